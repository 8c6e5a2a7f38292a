-- Records a heartbeat of a member or removes it, deletes expired members, and returns the others.
--
-- KEYS  1  a hash that maps members to the time of their last heartbeat in ms, a space, and their text
-- ARGV  1  the time for which a member is listed after its last heartbeat, in ms
--       2  the member; omitted to list the members only
--       3  its text; omitted to remove the member
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
