-- Records that a member lives or has left, drops members that were not heard of lately, and returns the others.
--
-- KEYS  1  a hash: member to the time of its last heartbeat in ms, a space, its text
-- ARGV  1  how long after its last heartbeat a member is listed, in ms
--       2  the member, absent to list the members only
--       3  its text, absent if it has left
--
-- Returns {member, text, member, text, ...}.

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
if ARGV[3] then
  redis.call('HSET', KEYS[1], ARGV[2], string.format('%.0f', now) .. ' ' .. ARGV[3])
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
elseif ARGV[2] then
  redis.call('HDEL', KEYS[1], ARGV[2])
end
local all, live = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #all, 2 do
  local space = string.find(all[i + 1], ' ', 1, true)
  local at = space and tonumber(string.sub(all[i + 1], 1, space - 1))
  if at and now - at < tonumber(ARGV[1]) then
    live[#live + 1] = all[i]
    live[#live + 1] = string.sub(all[i + 1], space + 1)
  else
    redis.call('HDEL', KEYS[1], all[i])
  end
end
return live
