-- Reserves the cost of one call.
--
-- KEYS  6, 7  optional: the intents, for an intent that is recorded with the hold; nothing
--             is reserved if its wish has other intents, or a response
--
-- ARGV  1  epoch and sequence as known, free (1 or 0), horizon in ms (-1: the whole period, and an hour
--          without a period),
--          amounts of the resource after the call
--       2  hold ID   3  kind   4  resource ID ('' for a create)
--       5  team   6  key   7  metadata   8  holder
--       9  and on: the ceilings of each scope, 0 for none: of the key, the
--          team and the organisation, where the owner has a key and a team
--       then, with an intent: two of openIntents, IDs that do not conflict, response, and the arguments of noteIntent
--
-- Returns {status, head, team, key, [scope, ceiling] that would be exceeded (from 0), reserved amounts,
-- then for each scope used, reserved and needed for each ceiling}. The order of the ceilings is burn,
-- the periods, then the other amounts that are counts.

local ADMITTED, REFUSED, OTHER, SETTLED, CLOSED, REPEATED, LOST = 0, 1, 2, 3, 4, 5, 6

local given = numbers(ARGV[1])
local free, horizon, after = given[3] == 1, given[4], amountsAt(given, 4)
local id, kind, res, team, key, about = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]

if ended(id) then return head(SETTLED) end
if behind(given[1], given[2]) then save() end
if ledger.complete == 0 and not free then return head(CLOSED) end

local held, record = holdOf(id), resource(res)
local scopes = scopesOf(team, key)
local intent = 9 + #scopes
if KEYS[6] and not held then
  local answer, wish = ARGV[intent + 3], ARGV[intent + 4]
  openIntents(6, intent, {answer, wish, ARGV[intent + 5]})
  if not intents.known or intents.complete == 0 then return head(LOST) end
  local rows = others(wish, id, ARGV[intent + 2])
  if rows and (#rows > 0 or answerOf(answer)) then return head(REPEATED) end
end
local before = amountsAt({}, 0)
if res ~= '' then
  local t, k = '', ''
  if record then t, k, before = record.team, record.key, record.amounts end
  if t ~= team or k ~= key then
    local out = head(OTHER)
    out[3], out[4] = t, k
    return out
  end
end
local more = {}
for i = 1, AMOUNTS do
  more[i] = math.max(0, after[i] - before[i])
  if free or held then more[i] = 0 end
end

local status, scope, ceiling = ADMITTED, 0, 0
local out = {}
load(scopes)
for i, name in ipairs(scopes) do
  local a, limits, levels = account(name), numbers(ARGV[8 + i]), {}
  local function level(c, used, reserved, needs)
    levels[#levels + 1], levels[#levels + 2], levels[#levels + 3] = used, reserved, needs
    if status == ADMITTED and limits[c] > 0 and needs > 0 and used + reserved + needs > limits[c] then
      status, scope, ceiling = REFUSED, i - 1, c - 1
    end
  end
  level(1, a.committed[1], a.reserved[1], more[1])
  local function both(d) return a.committed[d] + a.reserved[d] end
  local burn, adds = both(1) - both(BOUNDED), more[1] - more[BOUNDED]
  local last, goes, needs
  local _, ends = bounds(a.at)
  for p, stop in ipairs(ends) do
    local left = math.max(0, stop - a.at)
    local ms = horizon < 0 and (stop < FOREVER and left or HOUR) or math.min(horizon, left)
    if ms ~= last then -- most periods end after the horizon
      last, goes = ms, forecast(burn, ms)
      needs = forecast(burn + adds, ms) - goes
      if adds > 0 then needs = math.max(1, needs) end
    end
    level(1 + p, a.periods[p].accrued, goes + both(COST), needs + more[COST])
  end
  for d = 2, COST - 1 do level(#periods + d, a.committed[d], a.reserved[d], more[d]) end
  level(#periods + COST, a.committed[SANDBOXES], a.reserved[SANDBOXES], more[SANDBOXES])
  out[i] = line(levels)
end

if status == ADMITTED and not held then
  if KEYS[6] then
    noteIntent(intent + 4)
    saveIntents()
  end
  each(team, key, function(a) add(a.reserved, more, 1) end)
  saveHold(id, {at = now, open = 0, wait = 0, base = record and record.version or 0, amounts = more, kind = kind, resource = res, team = team, key = key, about = about, holder = ARGV[8]})
  if record then
    record.pending = record.pending + 1
    saveResource(res, record)
  end
  save()
end
local reply = head(status)
reply[3], reply[4], reply[5], reply[6] = '', '', line({scope, ceiling}), line(held and held.amounts or more)
for i = 1, #out do reply[6 + i] = out[i] end
return reply
