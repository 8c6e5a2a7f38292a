local format, floor = string.format, math.floor
local clock = redis.call('TIME')
local now = clock[1] * 1000 + floor(clock[2] / 1000)

-- Integer format. %d takes half the time of %.0f, but a 32-bit server formats only small integers with it.
local wide = format('%d', 1e15) == '1000000000000000'
local function exact(text) return wide and text or (string.gsub(text, '%%d', '%%.0f')) end

local THREE = exact('[%d,%d,%d]')
