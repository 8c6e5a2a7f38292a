-- Replaces an entry if it is still what the caller has seen.
--
-- KEYS  1  the entry: the time it was written in ms, a space, its value
-- ARGV  1  the entry as seen, '' for none, '?' to look at it only
--       2  the new value, '' to delete the entry
--       3  how long it is kept, in ms
--
-- Returns {1 if it was replaced and 0 if not, the entry as it was, clock in ms}.

local clock = redis.call('TIME')
local now = string.format('%.0f', tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000))
local have = redis.call('GET', KEYS[1]) or ''
if have ~= ARGV[1] then return {0, have, now} end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], now .. ' ' .. ARGV[2], 'PX', ARGV[3])
end
return {1, have, now}
