-- Restores the intents that a gateway remembers. If an intent has two rows, the row with more adoptions is kept. An ended intent does
-- not return.
--
-- KEYS  1, 2  intents
-- ARGV  1, 2  see openIntents   3  epoch   4  name of the gateway, '' unless these are its last intents
--       then nine for each intent: created ('' for none), fingerprint, lookalike ('' for none), response ('' for none), ID,
--       row ('': the intent has ended), number of adoptions, owner, time and text of the response
--
-- Returns {1, or 0 if the epoch is another; [epoch, writes, now]}.

local fields, n = {}, (#ARGV - 4) / 9
for k = 0, n - 1 do
  local i = 5 + 9 * k
  fields[#fields + 1], fields[#fields + 2], fields[#fields + 3] = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  fields[#fields + 1], fields[#fields + 2] = ARGV[i + 3], 'x' .. ARGV[i + 4]
end
openIntents(1, 1, fields)
if format('%.0f', intents.epoch) ~= ARGV[3] then return {0, format(THREE, intents.epoch, intents.writes, now)} end
for k = 0, n - 1 do
  local i = 5 + 9 * k
  local created, fingerprint, lookalike, response, id = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4]
  local row, taken = ARGV[i + 5], tonumber(ARGV[i + 6])
  local stored, ended = find(fingerprint, id), tonumber(intents.value['x' .. id] or -1)
  if row == '' then
    if ended < taken then set('x' .. id, ARGV[i + 6]) end
    if stored and takenOf(stored) <= taken then
      replaceLine(fingerprint, id, nil)
      if lookalike ~= '' then replaceLine(lookalike, id, nil) end
    end
  elseif ended < taken and (not stored or takenOf(stored) < taken) then
    replaceLine(fingerprint, id, row)
    if lookalike ~= '' then replaceLine(lookalike, id, ARGV[i + 7]) end
    set('i' .. id, fingerprint .. '\n' .. lookalike)
  end
  if created ~= '' and not intents.value[created] then set(created, id) end
  if response ~= '' and not intents.value[response] then set(response, ARGV[i + 8]) end
end
if ARGV[4] ~= '' then set('s' .. ARGV[4], ARGV[3]) end
saveIntents()
return {1, format(THREE, intents.epoch, intents.writes, now)}
