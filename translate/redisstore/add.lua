-- Writes the records that are not there yet and their entries in the index, in one step.
-- KEYS: index, record 1, record 2, ... ARGV: ttl in ms (0: for ever), id 1, value 1, id 2, value 2, ...
for i = 2, #KEYS do
  local id, value = ARGV[2 * i - 2], ARGV[2 * i - 1]
  if redis.call('EXISTS', KEYS[i]) == 0 then
    if tonumber(ARGV[1]) > 0 then
      redis.call('SET', KEYS[i], value, 'PX', ARGV[1])
    else
      redis.call('SET', KEYS[i], value)
    end
    redis.call('SADD', KEYS[1], id)
  end
end
return 0
