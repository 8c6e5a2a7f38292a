-- Writes records and their index entries atomically. The index is a sorted set of ids
-- by expiry time. Each write removes the entries of expired records, and the index
-- expires with its last record.
-- KEYS: index, record 1, record 2, ... ARGV: ttl in ms (0: no expiry), "always" or
-- "new" (keep existing records), id 1, value 1, id 2, value 2, ...
-- Returns the number of records written.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local ttl, left = tonumber(ARGV[1]), redis.call('PTTL', KEYS[1])
local ends = '+inf'
if ttl > 0 then
  ends = string.format('%.0f', now + ttl)
end
local written = 0
for i = 2, #KEYS do
  local id, value = ARGV[2 * i - 1], ARGV[2 * i]
  if ARGV[2] == 'always' or redis.call('EXISTS', KEYS[i]) == 0 then
    if ttl > 0 then
      redis.call('SET', KEYS[i], value, 'PX', ttl)
    else
      redis.call('SET', KEYS[i], value)
    end
    redis.call('ZADD', KEYS[1], ends, id)
    written = written + 1
  end
end
if written > 0 then
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', now))
  if ttl == 0 then
    redis.call('PERSIST', KEYS[1])
  elseif left ~= -1 and left < ttl then -- -1: a record has no expiry
    redis.call('PEXPIRE', KEYS[1], ttl)
  end
end
return written
