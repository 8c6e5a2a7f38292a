-- Reserves the cost of one call. Its texts are in ARGV from index t, and its numbers follow index n of the first argument.
--
-- texts    hold ID, kind, resource ID ('' for a create), team, key, metadata, holder;
--          then, with an intent: response, the arguments of noteIntent, and IDs that do not conflict
-- numbers  free (1 or 0), horizon in ms (-1: until the end of the period, but at least an hour; an hour without a period), amounts of the
--          resource after the call, then for each scope the number of its ceilings, and for each ceiling its index (from 1)
--          and limit: for the key, the team and the organisation, where the owner has a key and a team
--
-- Nothing is reserved if the fingerprint of the intent has a response or other intents.
--
-- A hold that takes over open holds has the base 0, and the latest of their release times as its own; see settle.lua.
--
-- Returns {status, team and key of another owner}, or {status, scope and ceiling that would be exceeded (from 0), reserved amounts,
-- then used, reserved and needed for each ceiling}. The ceilings are in the order burn, the periods, then the amounts that are counts.

local ADMITTED, REFUSED, OTHER, SETTLED, CLOSED, REPEATED, LOST = 0, 1, 2, 3, 4, 5, 6
local MAXREAD = 10000 -- number of holds above which no open hold is taken over, because reading them takes too long
local LIMITED = {1, 0, 0, 0, 0, 0, 2, 3, 4, 5, SANDBOXES} -- the amount limited by each ceiling; 0 for the periods

-- returns the cost of a rate over some milliseconds, rounded up
local function forecast(rate, ms)
  local micro, part = parts(rate, ms)
  return micro + math.ceil(part / HOUR)
end

-- returns used, reserved and needed for a ceiling of an account
local function levelOf(a, c, more, horizon)
  local d = LIMITED[c]
  if d > 0 then return a[COMMITTED[d]], a[RESERVED[d]], more[d] end
  local _, ends = bounds(a[1])
  local burn = a[COMMITTED[1]] + a[RESERVED[1]] - a[COMMITTED[BOUNDED]] - a[RESERVED[BOUNDED]]
  local adds, stop = more[1] - more[BOUNDED], ends[c - 1]
  local left = math.max(0, stop - a[1])
  local ms = horizon < 0 and (stop < FOREVER and left or HOUR) or math.min(horizon, left)
  local goes = forecast(burn, ms)
  local needs = forecast(burn + adds, ms) - goes
  if adds > 0 then needs = math.max(1, needs) end
  local used, reserved = a[PERIODS[c - 1] + 1], goes + a[COMMITTED[COST]] + a[RESERVED[COST]]
  needs = needs + more[COST]
  -- the part of the horizon after the period must fit into the next period
  local beyond = (horizon < 0 and HOUR or horizon) - left
  if adds > 0 and beyond > 0 and stop < FOREVER then needs = math.max(needs, forecast(burn + adds, beyond) - used - reserved) end
  return used, reserved, needs
end

-- reports whether amounts are not all 0 and within the amounts of a call
local function covers(more, amounts)
  local any = false
  for i = 1, AMOUNTS do
    if amounts[i] > more[i] then return false end
    any = any or amounts[i] > 0
  end
  return any
end

-- returns the IDs of the open holds that the hold of a call takes over, their latest release time, and the amounts that the call needs
-- in addition to theirs
local function takes(res, record, more)
  local ids, wait, needed = {}, 0, more
  if redis.call('HLEN', KEYS[3]) > MAXREAD then return ids, wait, needed end
  local fields = redis.call('HGETALL', KEYS[3])
  for i = 1, #fields, 2 do
    local h = string.find(fields[i + 1], '\n' .. res .. '\n', 1, true) and holdOf(fields[i])
    if h and h.open == 1 and h.resource == res and h.team == record.team and h.key == record.key and covers(more, h.amounts) then
      ids[#ids + 1], wait = fields[i], math.max(wait, h.wait)
      local rest = {}
      for d = 1, AMOUNTS do rest[d] = math.max(0, needed[d] - h.amounts[d]) end
      needed = rest
    end
  end
  return ids, wait, needed
end

return function(t, n, intent)
  local free, horizon, after = given[n + 1] == 1, given[n + 2], amountsAt(given, n + 2)
  local id, kind, res, team, key, about = ARGV[t], ARGV[t + 1], ARGV[t + 2], ARGV[t + 3], ARGV[t + 4], ARGV[t + 5]
  if ended(id) then return {SETTLED} end
  if ledger.complete == 0 and not free then return {CLOSED} end

  local held, record = holdOf(id), resource(res)
  if intent and not held then
    if not intents.known or intents.complete == 0 then return {LOST} end
    local rows = others(ARGV[t + 8], id, ARGV[t + 13])
    if rows and (#rows > 0 or responseOf(ARGV[t + 7])) then return {REPEATED} end
  end
  if res ~= '' then
    local o, k = '', ''
    if record then o, k = record.team, record.key end
    if o ~= team or k ~= key then return {OTHER, o, k} end
  end
  local more, taken, wait, needed = after, {}, 0, nil
  if free or held then
    more = {0, 0, 0, 0, 0, 0, 0, 0}
  elseif record then
    for i = 1, AMOUNTS do more[i] = math.max(0, after[i] - record.amounts[i]) end
    if record.pending > 0 then taken, wait, needed = takes(res, record, more) end
  end

  local reply = {ADMITTED, 0, 0, unpack(held and held.amounts or more)}
  local scopes, owners, at, filled = scopesOf(team, key), {}, n + 3 + AMOUNTS, 3 + AMOUNTS
  for i = 1, #scopes do
    local a = look(scopes[i])
    owners[i] = a
    for c = at + 1, at + 2 * given[at], 2 do
      local used, reserved, needs = levelOf(a, given[c], needed or more, horizon)
      reply[filled + 1], reply[filled + 2], reply[filled + 3] = used, reserved, needs
      filled = filled + 3
      if reply[1] == ADMITTED and needs > 0 and used + reserved + needs > given[c + 1] then
        reply[1], reply[2], reply[3] = REFUSED, i - 1, given[c] - 1
      end
    end
    at = at + 1 + 2 * given[at]
  end

  if reply[1] == ADMITTED and not held then
    if intent then noteIntent(t + 8) end
    for i = 1, #scopes do accounts[scopes[i]] = owners[i] end
    for i = 1, #taken do
      unreserve(holdOf(taken[i]))
      drop(taken[i])
    end
    for i = 1, #scopes do
      add(owners[i], RESERVED, more, 1)
      correct(owners[i], more[1], now, owners[i][1])
    end
    record = resource(res)
    saveHold(id, {at = now, open = 0, wait = wait, base = record and #taken == 0 and record.version or 0, amounts = more, kind = kind, resource = res, team = team, key = key, about = about, holder = ARGV[t + 6]})
    if record then
      record.pending = record.pending + 1
      saveResource(res, record)
    end
    count()
  end
  return reply
end
