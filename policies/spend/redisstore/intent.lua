-- What scripts do with intents. All their keys are an organisation's, in its slot:
--   wish    hash    id of an intent -> when it was noted (Unix ms), a space, its row
--   like    hash    id of an intent without a known resource -> its owner
--   made    string  0, a space, the id in quotation marks of the intent that made a resource
--   answer  string

local function named(id) return '0 "' .. id .. '"' end

-- the intents of a wish but for those passed over, nil if id is one of them
local function others(wish, id, past)
  local seen = {}
  for other in string.gmatch(past, '%S+') do seen[other] = true end
  local all, out = redis.call('HGETALL', wish), {}
  for i = 1, #all, 2 do
    if all[i] == id then return nil end
    if not seen[all[i]] then
      out[#out + 1] = all[i]
      out[#out + 1] = all[i + 1]
    end
  end
  return out
end

local function put(key, id, value, keep)
  redis.call('HSET', key, id, value)
  redis.call('PEXPIRE', key, keep)
end

-- ARGV from i on: id, row, owner, how long it is kept in ms; at is the time in ms
local function noteIntent(wish, like, i, at)
  put(wish, ARGV[i], at .. ' ' .. ARGV[i + 1], ARGV[i + 3])
  put(like, ARGV[i], ARGV[i + 2], ARGV[i + 3])
end

-- what a row says, without when it was noted: a note that was repeated gives another time
local function said(row) return row and string.match(row, '^%d+ (.*)$') end

-- KEYS from k on: made, wish, like, answer
-- ARGV from i on: id, row that is replaced ('' for any), row ('' deletes it), which of the other keys are
-- written (m, l, a), text of the answer, how long what is written is kept in ms
-- Returns 1 if the row was replaced, and 0 if it is another.
local function finish(k, i)
  local id, was, row, what, keep = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 5]
  local mine = was == '' or said(redis.call('HGET', KEYS[k + 1], id)) == said(was)
  if mine then
    if row == '' then redis.call('HDEL', KEYS[k + 1], id) else put(KEYS[k + 1], id, row, keep) end
  end
  if string.find(what, 'm') then redis.call('SET', KEYS[k], named(id), 'PX', keep, 'NX') end
  if string.find(what, 'l') then redis.call('HDEL', KEYS[k + 2], id) end
  if string.find(what, 'a') then redis.call('SET', KEYS[k + 3], ARGV[i + 4], 'PX', keep) end
  return mine and 1 or 0
end
