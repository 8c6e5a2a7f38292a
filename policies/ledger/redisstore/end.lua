-- Ends intents of an organisation, or replaces their rows.
--
-- KEYS  1, 2  intents
-- ARGV  1, 2  see openIntents
--       then nine for each intent; see finish
--
-- Returns {1 if the intents are known, else 0; [epoch, writes, now]; number of replaced rows}. Unknown intents are left
-- unchanged: the gateway restores them together with their ends.

local fields, n = {}, (#ARGV - 2) / 9
for k = 0, n - 1 do
  for i = 0, 3 do fields[#fields + 1] = ARGV[3 + 9 * k + i] end
end
openIntents(1, 1, fields)
if not intents.known then return {0, format(THREE, intents.epoch, intents.writes, now), 0} end
local done = 0
for k = 0, n - 1 do done = done + finish(3 + 9 * k) end
saveIntents()
return {1, format(THREE, intents.epoch, intents.writes, now), done}
