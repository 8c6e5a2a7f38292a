-- Raises fields of a hash to numbers; a field that has a greater number keeps it.
--
-- KEYS  1  the hash
-- ARGV  1  for how long the hash is kept, in ms, 0 for ever
--       2  and on: fields, each with its number
--
-- Returns 1.

for i = 2, #ARGV, 2 do
  local have = tonumber(redis.call('HGET', KEYS[1], ARGV[i]) or 0)
  if tonumber(ARGV[i + 1]) > have then redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
end
if ARGV[1] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return 1
