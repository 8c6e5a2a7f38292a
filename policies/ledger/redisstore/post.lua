-- Adds to roll-ups, unless another gateway has posted since they were read.
--
-- KEYS  6  hash  progress of the roll-ups: version, all (Unix ms: time up to which all series are rolled up; absent before
--          the first roll-up), transfers (JSON: the moves of accrued costs between teams)
--       7  hash  item of a series -> series (JSON)
--       8  and following, a hash for each unit of time: item (JSON) -> micro-dollars
-- ARGV  1  version read   2  all ('': the first roll-up is not finished)   3  number of changes covered
--       4  number of series, then for each: item, series ('' ends it)
--       then for each unit: its expiry (Unix s), number of items, and for each: item, micro-dollars
--       then the number of corrections of accrued costs, and for each: start of the hour and micro-dollars, team and
--       key whose accounts contain the cost
--
-- Returns {1 if the posting was made, else 0, epoch, sequence and clock}.

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
