-- Replaces a record if it is still what the caller has seen.
--
-- KEYS  1  the records   2  their version
-- ARGV  1  the id   2  the record as seen, '' for none
--       3  the new one, '' to forget it   4  the new version
--
-- Returns {0: it is another, 1: replaced; the record as it was}.

local have = redis.call('HGET', KEYS[1], ARGV[1]) or ''
if have ~= ARGV[2] then return {0, have} end
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
else
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
end
redis.call('SET', KEYS[2], ARGV[4])
return {1, have}
