-- Functions for intents, the records of pending requests. All intents of an organisation are in two keys, in its slot:
--   hash   ''  [epoch, complete (1 or 0), start of the epoch]
--          '@' and the name of a gateway's store -> [epoch, number of writes in the epoch, time of the last write]
--          's' and the name of a gateway -> the epoch for which it has restored its intents
--          'w' and a fingerprint -> the intents of equal requests, one per line: ID, a space, row
--          'l' and a digest of looks -> the intents with unknown resources that look alike, one per line: ID, a space, owner
--          'm' and a resource -> ID of the intent that created it
--          'a' and a digest of an idempotency key -> the time (Unix ms), a space, and the response
--          'i' and an ID -> fingerprint and lookalike of an intent that has not ended, one per line
--          'x' and an ID -> number of adoptions of an ended intent; only within an hour after a loss
--   zset   these fields, by the time of their last change; '' -> MARKED
--
-- A row is the time at which the intent was recorded (Unix ms), a space, and the intent (JSON).
--
-- No key has a TTL, because a Redis that evicts keys with a TTL would evict intents first. Fields are deleted a day after their last
-- change.

local KEEP, YOUNG, MARKED = 86400000, 3600000, 1e15
local intents = {epoch = 0, complete = 0, began = 0, writes = 0, known = false, value = {}, changed = {}}

-- opens the intents in KEYS k and k + 1, and reads fields. ARGV from index a: name of the gateway's store, and [epoch, number of
-- writes] as known to the gateway. Sets intents.known if Redis has lost nothing since.
local function openIntents(k, a, fields)
  intents.key, intents.recent, intents.writer = KEYS[k], KEYS[k + 1], ARGV[a]
  local given, values = cjson.decode(ARGV[a + 1]), redis.call('HMGET', KEYS[k], '', '@' .. ARGV[a], unpack(fields))
  if values[1] then
    local h = cjson.decode(values[1])
    intents.epoch, intents.complete, intents.began = h[1], h[2], h[3]
  end
  local own = values[2] and cjson.decode(values[2])
  if own and own[1] == intents.epoch then intents.writes = own[2] end
  intents.known = intents.epoch > 0 and intents.epoch == given[1] and intents.writes >= given[2]
  intents.older = intents.epoch < given[1] or intents.epoch == given[1] and intents.writes < given[2]
  for i = 1, #fields do intents.value[fields[i]] = values[2 + i] end
end

local function set(field, value)
  intents.value[field], intents.changed[field] = value, true
end

-- deletes fields that have not changed for a day
local function trim()
  if not redis.call('ZSCORE', intents.recent, '') then -- the key was lost, so no field is older than now
    redis.call('ZADD', intents.recent, MARKED, '')
    for _, field in ipairs(redis.call('HKEYS', intents.key)) do
      if field ~= '' then redis.call('ZADD', intents.recent, 'NX', format('%.0f', now), field) end
    end
  end
  local old = redis.call('ZRANGEBYSCORE', intents.recent, '-inf', format('%.0f', now - KEEP), 'LIMIT', 0, 200)
  if #old > 0 then
    redis.call('HDEL', intents.key, unpack(old))
    redis.call('ZREM', intents.recent, unpack(old))
  end
end

-- writes the changed fields
local function saveIntents()
  intents.writes = intents.writes + 1
  local own = '@' .. intents.writer
  local at = format('%.0f', now)
  local put, times, gone = {own, format(THREE, intents.epoch, intents.writes, now)}, {at, own}, {}
  for field in pairs(intents.changed) do
    local value = intents.value[field]
    if value and value ~= '' then
      put[#put + 1], put[#put + 2] = field, value
      times[#times + 1], times[#times + 2] = at, field
    else
      gone[#gone + 1] = field
    end
  end
  redis.call('HSET', intents.key, unpack(put))
  redis.call('ZADD', intents.recent, unpack(times))
  if #gone > 0 then
    redis.call('HDEL', intents.key, unpack(gone))
    redis.call('ZREM', intents.recent, unpack(gone))
  end
  if intents.writes % 32 == 0 then trim() end
end

-- returns the value of an intent in a field of lines, or nil, and the start and end of its line
local function find(field, id)
  local text = intents.value[field]
  if not text then return nil end
  local from, value = string.find('\n' .. text, '\n' .. id .. ' ', 1, true)
  if not from then return nil end
  local to = (string.find(text, '\n', value, true) or #text + 1) - 1
  return string.sub(text, value, to), from, to
end

-- replaces the value of an intent in a field of lines; nil removes it
local function replaceLine(field, id, value)
  local text = intents.value[field] or ''
  local stored, from, to = find(field, id)
  if stored and to == #text then
    text = string.sub(text, 1, math.max(0, from - 2))
  elseif stored then
    text = string.sub(text, 1, from - 1) .. string.sub(text, to + 2)
  end
  if value and text ~= '' then text = text .. '\n' end
  set(field, value and text .. id .. ' ' .. value or text)
end
