-- Ends intents of an organisation, or has them go on otherwise.
--
-- KEYS  for each: made, wish, like, answer
-- ARGV  for each six; see finish
--
-- Returns how many rows were replaced.

local done = 0
for n = 0, #KEYS / 4 - 1 do done = done + finish(4 * n + 1, 6 * n + 1) end
return done
