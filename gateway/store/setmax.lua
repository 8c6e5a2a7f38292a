-- Sets fields of a hash to numbers unless they already have a larger one.
--
-- KEYS  1  the hash
-- ARGV  1  the time for which the hash is kept, in ms; 0 for no expiry
--       2  and following: fields, each followed by its number
--
-- Returns 1.

for i = 2, #ARGV, 2 do
  local have = tonumber(redis.call('HGET', KEYS[1], ARGV[i]) or 0)
  if tonumber(ARGV[i + 1]) > have then redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
end
if ARGV[1] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return 1
