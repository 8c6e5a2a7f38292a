-- Removes intents whose calls are known to have created nothing.
--
-- KEYS  1, 2  intents
-- ARGV  1, 2  see openIntents   3 and following: IDs
--
-- Returns {1 if the intents are known, else 0; [epoch, writes, now]}.

local names = {}
for i = 3, #ARGV do names[#names + 1] = 'i' .. ARGV[i] end
openIntents(1, 1, names)
if not intents.known then return {0, format(THREE, intents.epoch, intents.writes, now)} end
for i = 3, #ARGV do
  local fingerprint, lookalike = string.match(intents.value['i' .. ARGV[i]] or '', '^(.-)\n(.*)$')
  if fingerprint then
    for _, field in ipairs({fingerprint, lookalike}) do
      if intents.value[field] == nil and field ~= '' then intents.value[field] = redis.call('HGET', intents.key, field) end
    end
    remove(ARGV[i], fingerprint, lookalike)
  end
end
saveIntents()
return {1, format(THREE, intents.epoch, intents.writes, now)}
