-- Replaces a record if it is still what the caller has seen.
--
-- KEYS  1  the record   2  all records, by when they end
--       3  the pending ones, by when they end   4  those of the caller
-- ARGV  1  the record as seen, '' for none, '?' to look at it only
--       2  the new one   3  when it ends, in Unix ms   4  its name
--       5  1 if it is pending
--       6  how many may be pending   7  of the caller
--
-- Returns {0: it is another, 1: replaced, 2: too many are pending; the record as it
-- was; clock in ms}.

local clock = redis.call('TIME')
local ms = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local now = string.format('%.0f', ms)
local have = redis.call('GET', KEYS[1]) or ''
if have ~= ARGV[1] then return {0, have, now} end
local left = tonumber(ARGV[3]) - ms
if left <= 0 then return {0, have, now} end
for i = 2, 4 do redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now) end
if ARGV[5] == '1' then
  local waits = redis.call('ZSCORE', KEYS[3], ARGV[4])
  if not waits and (redis.call('ZCARD', KEYS[3]) >= tonumber(ARGV[6]) or redis.call('ZCARD', KEYS[4]) >= tonumber(ARGV[7])) then
    return {2, have, now}
  end
  for i = 3, 4 do redis.call('ZADD', KEYS[i], ARGV[3], ARGV[4]) end
else
  for i = 3, 4 do redis.call('ZREM', KEYS[i], ARGV[4]) end
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', string.format('%.0f', left))
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[4])
for i = 2, 4 do
  if redis.call('PTTL', KEYS[i]) < left then redis.call('PEXPIRE', KEYS[i], string.format('%.0f', left)) end
end
return {1, have, now}
