-- Zeroes the counts of scopes and begins a new generation for them.
--
-- KEYS  the scope keys.
--
-- A scope without counts stays absent. A window later than the clock is reset to the clock: this is how an operator repairs the effect
-- of a clock that stepped forward and back. Leases taken before the reset stay with their gateways until these learn about the new
-- generation; their permits can be spent, but no longer returned.

local SIZE = {60, 3600, 86400}
local RETENTION = 7200

local clock = redis.call('TIME')
local sec = tonumber(clock[1])
local now = sec * 1000 + math.floor(tonumber(clock[2]) / 1000)
local done = 0
for k = 1, #KEYS do
  local v = redis.call('GET', KEYS[k])
  if v then
    local s = cjson.decode(v)
    s[1] = math.max(now, s[1] + 1)
    for w = 1, 3 do s[2 * w], s[2 * w + 1] = math.floor(sec / SIZE[w]), 0 end
    redis.call('SET', KEYS[k], '[' .. table.concat(s, ',') .. ']', 'EXAT', (s[6] + 1) * SIZE[3] + RETENTION)
    done = done + 1
  end
end
return done
