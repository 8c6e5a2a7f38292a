-- Functions that end intents.

-- returns the content of a row without its time, because a repeated record has another time
local function said(row) return row and string.match(row, '^%d+ (.*)$') end

local function takenOf(row)
  local json = said(row)
  return json and cjson.decode(json).taken or 0
end

-- removes an ended intent
local function remove(id, fingerprint, lookalike)
  local stored = find(fingerprint, id)
  replaceLine(fingerprint, id, nil)
  if lookalike ~= '' then replaceLine(lookalike, id, nil) end
  set('i' .. id, nil)
  if now - intents.began < YOUNG then set('x' .. id, format('%.0f', takenOf(stored))) end
end

-- ARGV from index i: created, fingerprint, lookalike, response, ID, row to replace ('' for any), new row ('' deletes it), the other
-- fields to write (m, l, a), text of the response. Returns 1 if the row was replaced, and 0 if the stored row differs.
local function finish(i)
  local created, fingerprint, lookalike, response = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local id, was, row, what = ARGV[i + 4], ARGV[i + 5], ARGV[i + 6], ARGV[i + 7]
  local stored = find(fingerprint, id)
  local mine = was == '' or stored == was or said(stored) == said(was)
  if mine and row == '' then
    remove(id, fingerprint, '')
  elseif mine then
    replaceLine(fingerprint, id, row)
  end
  if string.find(what, 'm') and not intents.value[created] then set(created, id) end
  if string.find(what, 'l') then replaceLine(lookalike, id, nil) end
  if string.find(what, 'a') then set(response, format('%.0f ', now) .. ARGV[i + 8]) end
  return mine and 1 or 0
end
