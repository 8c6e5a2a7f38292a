-- Replaces an entry if it is still what the caller has seen.
--
-- KEYS  1  the entry: the time it was written in ms, a space, its value
--       2  and on: indexes, which have the keys of entries by when they end
-- ARGV  1  the entry as seen, '' for none, '?' to look at it only
--       2  the new value, '' to delete the entry
--       3  how long it is kept, in ms   4  or when it ends, in Unix ms, '' otherwise
--       5  and on, for each index: how many entries it may have, 0 for any number,
--          -1 if the entry is not in it
--
-- Returns {0: it is another, 1: replaced, 2: an index is full; the entry as it was;
-- clock in ms}.

local clock = redis.call('TIME')
local ms = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local now = string.format('%.0f', ms)
local have = redis.call('GET', KEYS[1]) or ''
local left = ARGV[4] == '' and tonumber(ARGV[3]) or tonumber(ARGV[4]) - ms
local keeps = ARGV[2] ~= ''
if have ~= ARGV[1] or keeps and left <= 0 then return {0, have, now} end
for i = 2, #KEYS do
  redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now)
  local most = tonumber(ARGV[i + 3])
  if most > 0 and not redis.call('ZSCORE', KEYS[i], KEYS[1]) and redis.call('ZCARD', KEYS[i]) >= most then return {2, have, now} end
end
if keeps then
  redis.call('SET', KEYS[1], now .. ' ' .. ARGV[2], 'PX', string.format('%.0f', left))
else
  redis.call('DEL', KEYS[1])
end
for i = 2, #KEYS do
  if keeps and tonumber(ARGV[i + 3]) >= 0 then
    redis.call('ZADD', KEYS[i], string.format('%.0f', ms + left), KEYS[1])
  else
    redis.call('ZREM', KEYS[i], KEYS[1])
  end
  local lives = redis.call('PTTL', KEYS[i])
  if lives ~= -2 and lives < left then redis.call('PEXPIRE', KEYS[i], string.format('%.0f', left)) end
end
return {1, have, now}
