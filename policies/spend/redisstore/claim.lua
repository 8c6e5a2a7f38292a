-- Makes a resource that of an intent.
--
-- KEYS  1  made   2  like
-- ARGV  1  id   2  owner   3  whether it has a name (1 or 0)   4  how long that is kept, in ms
--
-- Returns 1 if it is the intent's, and 0 if another has made it, or may have.

local have = redis.call('GET', KEYS[1])
if have then return have == named(ARGV[1]) and 1 or 0 end
local all = redis.call('HGETALL', KEYS[2])
for i = 1, #all, 2 do
  if all[i] ~= ARGV[1] and (ARGV[3] == '0' or all[i + 1] ~= ARGV[2]) then return 0 end
end
redis.call('SET', KEYS[1], named(ARGV[1]), 'PX', ARGV[4])
return 1
