-- Adds to roll-ups, unless another gateway has done so since they were read.
--
-- KEYS  6  hash  what the roll-ups are at: version, all (Unix ms: until when all series
--          are rolled up; absent before the first time)
--       7  hash  item of a series -> series (JSON)
--       8  and on, a hash for each unit of time: item (JSON) -> micro-dollars
-- ARGV  1  version read   2  all ('': the first time is not over)   3  how many of the
--          changes are in   4  how many series, and these: item, series ('' ends it)
--       then for each unit: when it is dropped (Unix s), how many items, and these:
--       item, micro-dollars
--       then how many corrections of what has accrued, and these: when the hour
--       began and micro-dollars, team, key
--
-- Returns {1 if it was done and 0 if not, epoch, sequence and clock}.

open()
if (redis.call('HGET', KEYS[6], 'version') or '0') ~= ARGV[1] then return head(0) end
redis.call('HSET', KEYS[6], 'version', string.format('%.0f', tonumber(ARGV[1]) + 1))
if ARGV[2] ~= '' then redis.call('HSET', KEYS[6], 'all', ARGV[2]) end
redis.call('LTRIM', KEYS[5], ARGV[3], -1)
local at = 5
for _ = 1, tonumber(ARGV[4]) do
  if ARGV[at + 1] == '' then
    redis.call('HDEL', KEYS[7], ARGV[at])
  else
    redis.call('HSET', KEYS[7], ARGV[at], ARGV[at + 1])
  end
  at = at + 2
end
for k = 8, #KEYS do
  local drop, items = ARGV[at], tonumber(ARGV[at + 1])
  at = at + 2
  for _ = 1, items do
    redis.call('HINCRBY', KEYS[k], ARGV[at], ARGV[at + 1])
    at = at + 2
  end
  redis.call('EXPIREAT', KEYS[k], drop)
end
for _ = 1, tonumber(ARGV[at]) do
  local n = numbers(ARGV[at + 1])
  for _, a in ipairs(accountsOf(ARGV[at + 2], ARGV[at + 3])) do correct(a, n[2], n[1], n[1] + HOUR) end
  at = at + 3
end
write()
return head(1)
