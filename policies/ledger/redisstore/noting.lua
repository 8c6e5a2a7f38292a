-- Functions that look up and record intents.

-- returns the IDs and rows of the intents of a fingerprint, except the ignored ones; nil if id is one of them
local function others(fingerprint, id, ignored)
  local text, out = intents.value[fingerprint], {}
  if not text or text == '' then return out end
  local seen = {}
  for other in string.gmatch(ignored, '%S+') do seen[other] = true end
  for line in string.gmatch(text, '[^\n]+') do
    local other, row = string.match(line, '^(%S+) (.*)$')
    if other == id then return nil end
    if not seen[other] then out[#out + 1], out[#out + 2] = other, row end
  end
  return out
end

-- returns the response stored in a field, or nil if it is missing or older than a day
local function responseOf(field)
  local at, text = string.match(intents.value[field] or '', '^(%d+) (.*)$')
  return at and now - tonumber(at) < KEEP and text or nil
end

-- ARGV from index i: fingerprint, lookalike, ID, row without its time, owner
local function noteIntent(i)
  replaceLine(ARGV[i], ARGV[i + 2], format('%.0f ', now) .. ARGV[i + 3])
  replaceLine(ARGV[i + 1], ARGV[i + 2], ARGV[i + 4])
  set('i' .. ARGV[i + 2], ARGV[i] .. '\n' .. ARGV[i + 1])
end
