-- Functions that find intents and record them.

-- the intents of a wish except for those passed over, as IDs and rows; nil if id is one of them
local function others(wish, id, past)
  local text, out = intents.value[wish], {}
  if not text or text == '' then return out end
  local seen = {}
  for other in string.gmatch(past, '%S+') do seen[other] = true end
  for line in string.gmatch(text, '[^\n]+') do
    local other, row = string.match(line, '^(%S+) (.*)$')
    if other == id then return nil end
    if not seen[other] then out[#out + 1], out[#out + 2] = other, row end
  end
  return out
end

-- the stored response in a field, nil for none and for one that is older than a day
local function answerOf(field)
  local at, text = string.match(intents.value[field] or '', '^(%d+) (.*)$')
  return at and now - tonumber(at) < KEEP and text or nil
end

-- ARGV from i on: wish, looks, ID, row without its time, owner
local function noteIntent(i)
  replaceLine(ARGV[i], ARGV[i + 2], format('%.0f ', now) .. ARGV[i + 3])
  replaceLine(ARGV[i + 1], ARGV[i + 2], ARGV[i + 4])
  set('i' .. ARGV[i + 2], ARGV[i] .. '\n' .. ARGV[i + 1])
end
