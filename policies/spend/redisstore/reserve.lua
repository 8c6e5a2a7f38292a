-- Reserves the cost of one call: with its texts in ARGV from t on, and its numbers among those given after n.
--
-- texts    hold ID, kind, resource ID ('' for a create), team, key, metadata, holder;
--          then, with an intent: response, the arguments of noteIntent, and IDs that do not conflict
-- numbers  free (1 or 0), horizon in ms (-1: the whole period, and an hour without a period), amounts of the
--          resource after the call, then the ceilings of each scope, 0 for none: of the key, the team and the organisation,
--          where the owner has a key and a team
--
-- Nothing is reserved if the wish of the intent has other intents, or a response.
--
-- Returns {status, team and key of another owner}, or {status, scope and ceiling that would be exceeded (from 0),
-- reserved amounts, then used, reserved and needed for each ceiling other than 0}. The order of the ceilings is burn,
-- the periods, then the other amounts that are counts.

local ADMITTED, REFUSED, OTHER, SETTLED, CLOSED, REPEATED, LOST = 0, 1, 2, 3, 4, 5, 6
local LIMITED = {1, 0, 0, 0, 0, 0, 2, 3, 4, 5, SANDBOXES} -- the amount of each ceiling, 0 for those of the periods
local CEILINGS = #LIMITED

-- used, reserved and needed for a ceiling of an account
local function levelOf(a, c, more, horizon)
  local d = LIMITED[c]
  if d > 0 then return a[COMMITTED[d]], a[RESERVED[d]], more[d] end
  local function both(i) return a[COMMITTED[i]] + a[RESERVED[i]] end
  local _, ends = bounds(a[1])
  local burn, adds, stop = both(1) - both(BOUNDED), more[1] - more[BOUNDED], ends[c - 1]
  local left = math.max(0, stop - a[1])
  local ms = horizon < 0 and (stop < FOREVER and left or HOUR) or math.min(horizon, left)
  local goes = forecast(burn, ms)
  local needs = forecast(burn + adds, ms) - goes
  if adds > 0 then needs = math.max(1, needs) end
  return a[PERIODS[c - 1] + 1], goes + both(COST), needs + more[COST]
end

local function reserve(t, n, intent)
  local free, horizon, after = given[n + 1] == 1, given[n + 2], amountsAt(given, n + 2)
  local id, kind, res, team, key, about = ARGV[t], ARGV[t + 1], ARGV[t + 2], ARGV[t + 3], ARGV[t + 4], ARGV[t + 5]
  if ended(id) then return {SETTLED} end
  if ledger.complete == 0 and not free then return {CLOSED} end

  local held, record = holdOf(id), resource(res)
  if intent and not held then
    if not intents.known or intents.complete == 0 then return {LOST} end
    local rows = others(ARGV[t + 8], id, ARGV[t + 13])
    if rows and (#rows > 0 or answerOf(ARGV[t + 7])) then return {REPEATED} end
  end
  local before = {0, 0, 0, 0, 0, 0, 0, 0}
  if res ~= '' then
    local o, k = '', ''
    if record then o, k, before = record.team, record.key, record.amounts end
    if o ~= team or k ~= key then return {OTHER, o, k} end
  end
  local more = {}
  for i = 1, AMOUNTS do
    more[i] = (free or held) and 0 or math.max(0, after[i] - before[i])
  end

  local status, scope, ceiling = ADMITTED, 0, 0
  local levels, filled = {}, 0
  local scopes, owners = scopesOf(team, key), {}
  for i, name in ipairs(scopes) do
    local a = look(name)
    owners[i] = a
    for c = 1, CEILINGS do
      local limit = given[n + 2 + AMOUNTS + CEILINGS * (i - 1) + c]
      if limit > 0 then
        local used, reserved, needs = levelOf(a, c, more, horizon)
        levels[filled + 1], levels[filled + 2], levels[filled + 3] = used, reserved, needs
        filled = filled + 3
        if status == ADMITTED and needs > 0 and used + reserved + needs > limit then
          status, scope, ceiling = REFUSED, i - 1, c - 1
        end
      end
    end
  end

  if status == ADMITTED and not held then
    if intent then noteIntent(t + 8) end
    for i, name in ipairs(scopes) do
      accounts[name] = owners[i]
      add(owners[i], RESERVED, more, 1)
    end
    saveHold(id, {at = now, open = 0, wait = 0, base = record and record.version or 0, amounts = more, kind = kind, resource = res, team = team, key = key, about = about, holder = ARGV[t + 6]})
    if record then
      record.pending = record.pending + 1
      saveResource(res, record)
    end
    count()
  end
  local reply = {status, scope, ceiling, unpack(held and held.amounts or more)}
  for i = 1, filled do reply[3 + AMOUNTS + i] = levels[i] end
  return reply
end
