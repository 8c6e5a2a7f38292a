-- Functions that end intents.

-- the content of a row without its time: a note that was repeated has another time
local function said(row) return row and string.match(row, '^%d+ (.*)$') end

local function takenOf(row)
  local json = said(row)
  return json and cjson.decode(json).taken or 0
end

-- removes an intent that has ended
local function remove(id, wish, looks)
  local stored = find(wish, id)
  replaceLine(wish, id, nil)
  if looks ~= '' then replaceLine(looks, id, nil) end
  set('i' .. id, nil)
  if now - intents.began < YOUNG then set('x' .. id, format('%.0f', takenOf(stored))) end
end

-- ARGV from i on: made, wish, looks, answer, ID, row that is replaced ('' for any), row ('' deletes it), which of the
-- other fields are written (m, l, a), text of the response
-- Returns 1 if the row was replaced, and 0 if the stored row is another.
local function finish(i)
  local made, wish, looks, answer = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local id, was, row, what = ARGV[i + 4], ARGV[i + 5], ARGV[i + 6], ARGV[i + 7]
  local stored = find(wish, id)
  local mine = was == '' or stored == was or said(stored) == said(was)
  if mine and row == '' then
    remove(id, wish, '')
  elseif mine then
    replaceLine(wish, id, row)
  end
  if string.find(what, 'm') and not intents.value[made] then set(made, id) end
  if string.find(what, 'l') then replaceLine(looks, id, nil) end
  if string.find(what, 'a') then set(answer, format('%.0f ', now) .. ARGV[i + 8]) end
  return mine and 1 or 0
end
