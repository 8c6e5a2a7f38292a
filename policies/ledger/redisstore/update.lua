-- Records and ends intents of an organisation, in order, as one atomic step.
--
-- KEYS  1, 2  intents
-- ARGV  1, 2  see openIntents
--       then for each call: 'note' and the arguments of note, or 'finish' and the arguments of finish
--
-- Returns {1 if the intents are known, else 0; [epoch, writes, now]; then an array for each call: see note, or {number of replaced rows}}.
-- Unknown intents are left unchanged: the gateway restores them together with their ends.

-- Records an intent unless its fingerprint has a response or other intents. ARGV from index i: response, the arguments of noteIntent (ID ''
-- to look up only), IDs that do not conflict. Returns {1, response, then IDs and rows of other intents}, or {0} if the intents are
-- incomplete. The intent was recorded if there is neither a response nor another intent.
local function note(i)
  if intents.complete == 0 then return {0} end
  local response, rows = responseOf(ARGV[i]) or '', others(ARGV[i + 1], ARGV[i + 3], ARGV[i + 6])
  if rows and #rows == 0 and response == '' and ARGV[i + 3] ~= '' then noteIntent(i + 1) end
  return {1, response, unpack(rows or {})}
end

local calls, fields, i = {}, {}, 3
while ARGV[i] do
  local notes = ARGV[i] == 'note'
  for f = i + 1, i + (notes and 3 or 4) do fields[#fields + 1] = ARGV[f] end
  calls[#calls + 1] = {notes, i + 1}
  i = i + (notes and 8 or 10)
end
openIntents(1, 1, fields)

local replies = {}
for k, c in ipairs(calls) do
  if not intents.known then
    replies[k] = {0}
  elseif c[1] then
    replies[k] = note(c[2])
  else
    replies[k] = {finish(c[2])}
  end
end
if next(intents.changed) then saveIntents() end
return {intents.known and 1 or 0, format(THREE, intents.epoch, intents.writes, now), unpack(replies)}
