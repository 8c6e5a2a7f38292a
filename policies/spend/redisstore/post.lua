-- Adds to roll-ups, unless another gateway has done so since they were read.
--
-- KEYS  1  hash  what the roll-ups are at: version, until (Unix ms), series (JSON)
--       2  list  changes that are not in them yet; see common.lua
--       3  and on, a hash for each unit of time: item (JSON) -> micro-dollars
-- ARGV  1  version read   2  until   3  series   4  how many of the changes are in
--       then for each unit: when it is dropped (Unix s), how many items, and these:
--       item, micro-dollars
--
-- Returns 1 if it was done and 0 if not.

if (redis.call('HGET', KEYS[1], 'version') or '0') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'version', string.format('%.0f', tonumber(ARGV[1]) + 1), 'until', ARGV[2], 'series', ARGV[3])
redis.call('LTRIM', KEYS[2], ARGV[4], -1)
local at = 5
for k = 3, #KEYS do
  local drop, items = ARGV[at], tonumber(ARGV[at + 1])
  at = at + 2
  for _ = 1, items do
    redis.call('HINCRBY', KEYS[k], ARGV[at], ARGV[at + 1])
    at = at + 2
  end
  redis.call('EXPIREAT', KEYS[k], drop)
end
return 1
