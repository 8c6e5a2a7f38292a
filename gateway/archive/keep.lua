-- Keeps explanations, and drops those that are too old or too many.
--
-- KEYS  1  the index: "<id> <summary>" by time, in Unix ms   2  reports by id
-- ARGV  1  for how long, in ms   2  how many
--       then id, time, summary and report of each

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
for i = 3, #ARGV, 4 do
  redis.call('ZADD', KEYS[1], math.min(tonumber(ARGV[i + 1]), now), ARGV[i] .. ' ' .. ARGV[i + 2])
  redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 3])
end
local function drop(members)
  for _, member in ipairs(members) do
    redis.call('ZREM', KEYS[1], member)
    redis.call('HDEL', KEYS[2], string.match(member, '^%S+'))
  end
end
drop(redis.call('ZRANGE', KEYS[1], '-inf', string.format('%.0f', now - ARGV[1]), 'BYSCORE', 'LIMIT', 0, 1000))
local over = redis.call('ZCARD', KEYS[1]) - ARGV[2]
if over > 0 then drop(redis.call('ZRANGE', KEYS[1], 0, math.min(over, 1000) - 1)) end
for i = 1, 2 do redis.call('PEXPIRE', KEYS[i], ARGV[1]) end
return 1
