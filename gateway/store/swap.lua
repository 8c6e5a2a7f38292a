-- Replaces an entry if it still has the value that the caller has read.
--
-- KEYS  1  the entry: the time of its write in ms, a space, its value
--       2  the version of the entries
--       3  the list of the latest version changes: the version before, a space, the version
--          after, a space, the key of the entry
--       4  and following: indexes, sorted sets of the keys of entries by expiry time
-- ARGV  1  the entry as read, '' for none, '?' to read it only
--       2  the new value, '' to delete the entry
--       3  the time for which it is kept in ms, 0 for no expiry
--       4  or its expiry time in Unix ms, '' otherwise
--       5  the new version, '' to keep the version
--       6  the number of changes to keep
--       7  '1' to delete the entries of a full index that expire first
--       8  and following, for each index: the maximum number of entries, 0 for no limit,
--          -1 if the entry is not in the index
--
-- Returns {0: the entry differs, 1: replaced, 2: an index is full; the entry before;
-- the clock in ms; the version before, '' if it was kept}.

local clock = redis.call('TIME')
local ms = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local function int(x) return string.format('%.0f', x) end
local now, ends = int(ms), '+inf'
if ARGV[4] ~= '' then ends = ARGV[4] elseif ARGV[3] ~= '0' then ends = int(ms + ARGV[3]) end
local have = redis.call('GET', KEYS[1]) or ''
local keeps = ARGV[2] ~= ''
if have ~= ARGV[1] or keeps and ends ~= '+inf' and tonumber(ends) <= ms then return {0, have, now, ''} end
for i = 4, #KEYS do
  redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now)
  local most = tonumber(ARGV[i + 4])
  if most > 0 and not redis.call('ZSCORE', KEYS[i], KEYS[1]) then
    local excess = redis.call('ZCARD', KEYS[i]) - most + 1
    if excess > 0 and ARGV[7] ~= '1' then return {2, have, now, ''} end
    for _, evicted in ipairs(excess > 0 and redis.call('ZRANGE', KEYS[i], 0, excess - 1) or {}) do
      redis.call('DEL', evicted)
      for j = 4, #KEYS do redis.call('ZREM', KEYS[j], evicted) end
    end
  end
end
if not keeps then
  redis.call('DEL', KEYS[1])
elseif ends == '+inf' then
  redis.call('SET', KEYS[1], now .. ' ' .. ARGV[2])
else
  redis.call('SET', KEYS[1], now .. ' ' .. ARGV[2], 'PX', int(ends - ms))
end
local was = ''
if ARGV[5] ~= '' then
  was = redis.call('GET', KEYS[2]) or ''
  redis.call('SET', KEYS[2], ARGV[5])
  redis.call('RPUSH', KEYS[3], was .. ' ' .. ARGV[5] .. ' ' .. KEYS[1])
  redis.call('LTRIM', KEYS[3], -tonumber(ARGV[6]), -1)
end
for i = 4, #KEYS do
  if keeps and tonumber(ARGV[i + 4]) >= 0 then
    redis.call('ZADD', KEYS[i], ends, KEYS[1])
  else
    redis.call('ZREM', KEYS[i], KEYS[1])
  end
  local last = redis.call('ZRANGE', KEYS[i], -1, -1, 'WITHSCORES')[2]
  if last and string.find(last, 'inf') then
    redis.call('PERSIST', KEYS[i])
  elseif last then
    redis.call('PEXPIRE', KEYS[i], int(tonumber(last) - ms))
  end
end
return {1, have, now, was}
