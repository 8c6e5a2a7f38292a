-- Notes an intent unless there are others of its wish.
--
-- KEYS  1  wish   2  like   3  answer
-- ARGV  1  ids that do not stand in the way   2  id, '' to look only   3  row
--       4  owner   5  how long it is kept, in ms
--
-- Returns {clock in ms, answer, then ids and rows of the others}. It was noted if
-- there is neither an answer nor another.

local clock = redis.call('TIME')
local now = string.format('%.0f', tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000))
local answer = redis.call('GET', KEYS[3]) or ''
local rows = others(KEYS[1], ARGV[2], ARGV[1])
if rows and #rows == 0 and answer == '' and ARGV[2] ~= '' then noteIntent(KEYS[1], KEYS[2], 2, now) end
local out = {now, answer}
for i = 1, #(rows or {}) do out[2 + i] = rows[i] end
return out
