-- Records an intent unless its wish has other intents, or a response.
--
-- KEYS  1, 2  intents
-- ARGV  1, 2  see openIntents   3  IDs that do not conflict   4  response
--       5  wish   6  looks   7  ID, '' only to look   8  row   9  owner
--
-- Returns {1 if the intents are known and complete, else 0; [epoch, writes, now]; response; then IDs and rows of the others}. The
-- intent was recorded if there is neither a response nor another.

openIntents(1, 1, {ARGV[4], ARGV[5], ARGV[6]})
if not intents.known or intents.complete == 0 then return {0, format(THREE, intents.epoch, intents.writes, now)} end
local answer = answerOf(ARGV[4]) or ''
local rows = others(ARGV[5], ARGV[7], ARGV[3])
if rows and #rows == 0 and answer == '' and ARGV[7] ~= '' then
  noteIntent(5)
  saveIntents()
end
local out = {1, format(THREE, intents.epoch, intents.writes, now), answer}
for i = 1, #(rows or {}) do out[3 + i] = rows[i] end
return out
