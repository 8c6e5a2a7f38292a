-- Reserves the cost of one call.
--
-- KEYS  6, 7  optional: the intents, for an intent that is recorded with the hold; nothing
--             is reserved if its wish has other intents, or a response
--
-- ARGV  1  epoch and sequence as known, free (1 or 0), horizon in ms (-1: the whole period, and an hour
--          without a period), six amounts of the resource after the call,
--          then the ten ceilings of each scope, 0 for none: of the key, the team and the organisation, where the owner has a key
--          and a team
--       2  hold ID   3  kind   4  resource ID ('' for a create)
--       5  team   6  key   7  metadata   8  holder
--       then, with an intent: two of openIntents, IDs that do not conflict, response, and the arguments of noteIntent
--
-- Returns {status, head, team and key of another owner}, or {status, head, scope and ceiling that would be exceeded (from 0),
-- reserved amounts, then used, reserved and needed for each ceiling other than 0}. The order of the ceilings is burn,
-- the periods, then the other amounts.

local ADMITTED, REFUSED, OTHER, SETTLED, CLOSED, REPEATED, LOST = 0, 1, 2, 3, 4, 5, 6
local LIMITS, INTENT = 10, 9 -- numbers before the ceilings; place of the arguments about an intent

local given = numbers(ARGV[1])
local free, horizon, after = given[3] == 1, given[4], amountsAt(given, 4)
local id, kind, res, team, key, about = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]

open(scopesOf(team, key), res ~= '' and {res} or {}, {id}, {id})
if ended(id) then return head(SETTLED) end
if behind(given[1], given[2]) then save() end
if ledger.complete == 0 and not free then return head(CLOSED) end

local held, record = holdOf(id), resource(res)
if KEYS[6] and not held then
  local answer, wish = ARGV[INTENT + 3], ARGV[INTENT + 4]
  openIntents(6, INTENT, {answer, wish, ARGV[INTENT + 5]})
  if not intents.known or intents.complete == 0 then return head(LOST) end
  local rows = others(wish, id, ARGV[INTENT + 2])
  if rows and (#rows > 0 or answerOf(answer)) then return head(REPEATED) end
end
local before = {0, 0, 0, 0, 0, 0}
if res ~= '' then
  local t, k = '', ''
  if record then t, k, before = record.team, record.key, record.amounts end
  if t ~= team or k ~= key then
    local out = head(OTHER)
    out[8], out[9] = t, k
    return out
  end
end
local more = {}
for i = 1, AMOUNTS do
  more[i] = (free or held) and 0 or math.max(0, after[i] - before[i])
end

local CEILINGS = #PERIODS + COST - 1

-- used, reserved and needed for a ceiling of an account
local function levelOf(a, c)
  if c == 1 or c > 1 + #PERIODS then
    local d = math.max(1, c - #PERIODS)
    return a[COMMITTED + d], a[RESERVED + d], more[d]
  end
  local _, ends = bounds(a[1])
  local burn, stop = a[COMMITTED + 1] + a[RESERVED + 1], ends[c - 1]
  local left = math.max(0, stop - a[1])
  local ms = horizon < 0 and (stop < FOREVER and left or HOUR) or math.min(horizon, left)
  local goes = forecast(burn, ms)
  local needs = forecast(burn + more[1], ms) - goes
  if more[1] > 0 then needs = math.max(1, needs) end
  return a[PERIODS[c - 1] + 1], goes + a[RESERVED + COST], needs + more[COST]
end

local status, scope, ceiling = ADMITTED, 0, 0
local levels, n = {}, 0
local scopes = accountsOf(team, key)
for i, a in ipairs(scopes) do
  for c = 1, CEILINGS do
    local limit = given[LIMITS + CEILINGS * (i - 1) + c]
    if limit > 0 then
      local used, reserved, needs = levelOf(a, c)
      levels[n + 1], levels[n + 2], levels[n + 3] = used, reserved, needs
      n = n + 3
      if status == ADMITTED and needs > 0 and used + reserved + needs > limit then
        status, scope, ceiling = REFUSED, i - 1, c - 1
      end
    end
  end
end

if status == ADMITTED and not held then
  if KEYS[6] then
    noteIntent(INTENT + 4)
    saveIntents()
  end
  for _, a in ipairs(scopes) do add(a, RESERVED, more, 1) end
  saveHold(id, {at = now, open = 0, wait = 0, base = record and record.version or 0, amounts = more, kind = kind, resource = res, team = team, key = key, about = about, holder = ARGV[8]})
  if record then
    record.pending = record.pending + 1
    saveResource(res, record)
  end
  save()
end
local reply = head(status)
reply[8], reply[9] = scope, ceiling
for i, amount in ipairs(held and held.amounts or more) do reply[9 + i] = amount end
for i = 1, n do reply[15 + i] = levels[i] end
return reply
