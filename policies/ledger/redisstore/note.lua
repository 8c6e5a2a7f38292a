-- Records an intent unless its fingerprint has a response or other intents.
--
-- KEYS  1, 2  intents
-- ARGV  1, 2  see openIntents   3  IDs that do not conflict   4  response
--       5  fingerprint   6  lookalike   7  ID, '' to look up only   8  row   9  owner
--
-- Returns {1 if the intents are known and complete, else 0; [epoch, writes, now]; response; then IDs and rows of other intents}.
-- The intent was recorded if there is neither a response nor another intent.

openIntents(1, 1, {ARGV[4], ARGV[5], ARGV[6]})
if not intents.known or intents.complete == 0 then return {0, format(THREE, intents.epoch, intents.writes, now)} end
local response = responseOf(ARGV[4]) or ''
local rows = others(ARGV[5], ARGV[7], ARGV[3])
if rows and #rows == 0 and response == '' and ARGV[7] ~= '' then
  noteIntent(5)
  saveIntents()
end
local out = {1, format(THREE, intents.epoch, intents.writes, now), response}
for i = 1, #(rows or {}) do out[3 + i] = rows[i] end
return out
