-- Corrects the counts of current windows.
--
-- KEYS     the scope keys, then the index of their organisation and its lease tables for even and odd days.
-- ARGV[1]  a JSON array of integers, for each scope key: generation; for each window its index, the minimum count, and the
--          amount to add; three quotas; then 1 and three held permits, or 0 and three zeros if the listed lease of the
--          gateway does not change.
-- ARGV[2]  the gateway.
--
-- A correction for an older generation is dropped, because an operator has reset the scope since. A correction for a newer generation
-- is from before the store lost its data, and restores the generation.

local SIZE = {60, 3600, 86400}
local RETENTION = 7200

local req = cjson.decode(ARGV[1])
local sec = tonumber(redis.call('TIME')[1])
local nk = #KEYS - 3
local writes = {}
local p = 1
for k = 1, nk do
  local v = redis.call('GET', KEYS[k])
  local s = v and cjson.decode(v) or {0, 0, 0, 0, 0, 0, 0, req[p + 10], req[p + 11], req[p + 12]}
  for w = 1, 3 do
    local current = math.floor(sec / SIZE[w])
    if s[2 * w] < current then s[2 * w], s[2 * w + 1] = current, 0 end
  end
  local changed = false
  if req[p] > s[1] then s[1], changed = req[p], true end
  if req[p] == s[1] then
    for w = 1, 3 do
      local o = p + 3 * w - 2
      local index, least, delta = req[o], req[o + 1], req[o + 2]
      if index > s[2 * w] then s[2 * w], s[2 * w + 1], changed = index, 0, true end
      if index == s[2 * w] then
        local count = math.max(0, math.max(s[2 * w + 1], least) + delta)
        if count ~= s[2 * w + 1] then s[2 * w + 1], changed = count, true end
      end
    end
  end
  local lease = nil
  if req[p + 13] == 1 and (v or changed) then
    lease = '[' .. table.concat({s[2], req[p + 14], s[4], req[p + 15], s[6], req[p + 16]}, ',') .. ']'
  end
  writes[k] = {changed, s, lease}
  p = p + 17
end

-- The counts are written last: a command refused by the server (ACL, memory) changes none of them.
local function expiry(s) return (s[6] + 1) * SIZE[3] + RETENTION end
for k = 1, nk do
  local changed, s, lease = writes[k][1], writes[k][2], writes[k][3]
  if lease then
    local leases = KEYS[nk + 2 + s[6] % 2]
    redis.call('HSET', leases, KEYS[k] .. '|' .. ARGV[2], lease)
    redis.call('EXPIREAT', leases, expiry(s))
  end
  if changed then
    redis.call('SADD', KEYS[nk + 1], KEYS[k])
    redis.call('EXPIREAT', KEYS[nk + 1], expiry(s))
  end
end
for k = 1, nk do
  local changed, s = writes[k][1], writes[k][2]
  if changed then redis.call('SET', KEYS[k], '[' .. table.concat(s, ',') .. ']', 'EXAT', expiry(s)) end
end
return nk
