-- Functions that all scripts of the ledger use to read and write it.

-- starts and ends of the periods that contain a time; the result for the latest time is cached
local function bounds(ms)
  if ms == found then return starts, stops end
  local c = calendar
  local day = ms < c[2] and 1 or ms < c[3] and 2 or 3
  local week, month, quarter = ms < c[6] and 5 or 6, ms < c[9] and 8 or 9, ms < c[12] and 11 or 12
  found, starts = ms, {c[day], c[week], c[month], c[quarter], c[14]}
  stops = {c[day + 1], c[week + 1], c[month + 1], c[quarter + 1], FOREVER}
  return starts, stops
end

-- returns the cost of a rate over some milliseconds in two parts: micro-dollars, and micro-dollar milliseconds per hour. Rate and time
-- are split at whole hours to limit the products: 1e12 * 8760, 277777 * 3.6e6 and 3.6e6 * 3.6e6.
local function parts(rate, ms)
  if rate <= 0 or ms <= 0 then return 0, 0 end
  if rate > MAXBURN then rate = MAXBURN end
  local hours, rest = floor(ms / HOUR), ms % HOUR
  return rate * hours + floor(rate / HOUR) * rest, (rate % HOUR) * rest
end

-- adds a field to the fields that open reads
local function want(k, field)
  if field == '' or stored[k][field] ~= nil then return end
  stored[k][field] = false
  wanted[k][#wanted[k] + 1] = field
end

-- reads fields of a key in one command
local function read(k, fields)
  local to, values = stored[k], redis.call(READS[k], KEYS[k], unpack(fields))
  for i = 1, #fields do to[fields[i]] = values[i] end
end

local function get(k, field)
  if stored[k][field] == nil then read(k, {field}) end
  return stored[k][field]
end

-- changes a field; false deletes it
local function put(k, field, value)
  stored[k][field], changed[k][field] = value, true
end

-- adds the missing periods to an account: all periods for a new account; the week, the quarter and the total for one of an earlier
-- version
local function complete(n, begin)
  for i, p in ipairs(PERIODS) do
    local from = i == 2 and PERIODS[1] or PERIODS[3]
    if not n[p] then n[p], n[p + 1], n[p + 2] = begin[i], n[from + 1] or 0, n[from + 2] or 0 end
  end
end

-- brings an account up to date, given as an array of integers; nil and false stand for a new account. After a change of the zone, the
-- current period continues until the next period of the new zone begins.
local function upToDate(n)
  n = n or {now, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
  local at = n[1]
  local to = math.max(now, at)
  local begin = bounds(to)
  if not n[28] then complete(n, begin) end
  if not n[29] then n[29], n[30], n[31], n[32] = 0, 0, 0, 0 end
  if to == at then return n end
  local rate = n[COMMITTED[1]] + n[RESERVED[1]]
  local micro, part = parts(rate, to - at)
  for i = 1, #PERIODS do
    local p, start = PERIODS[i], begin[i]
    local accrued, rest = n[p + 1] + micro, n[p + 2] + part
    if start > at then
      n[p], accrued, rest = start, parts(rate, to - start)
    end
    n[p + 1], n[p + 2] = accrued + floor(rest / HOUR), rest % HOUR
  end
  n[1] = to
  return n
end

-- returns the account of a scope; it is written only if it is in accounts
local function look(scope)
  local text = not accounts[scope] and get(1, scope)
  return accounts[scope] or upToDate(text and numbers(text))
end

local function account(scope)
  accounts[scope] = look(scope)
  return accounts[scope]
end

-- returns the scopes of an owner; the result for the latest owner is cached
local function scopesOf(team, key)
  if team == latest.team and key == latest.key then return latest.scopes end
  local out = {}
  if key ~= '' then out[1] = 'key:' .. key end
  if team ~= '' then out[#out + 1] = 'team:' .. team end
  out[#out + 1] = 'org'
  latest = {team = team, key = key, scopes = out}
  return out
end

-- returns the accounts of an owner's scopes; accounts not read before are read in one command
local function accountsOf(team, key)
  local scopes = scopesOf(team, key)
  if latest.accounts then return latest.accounts end
  local out, missing = {}, {}
  for i = 1, #scopes do
    if stored[1][scopes[i]] == nil then missing[#missing + 1] = scopes[i] end
  end
  if #missing > 0 then read(1, missing) end
  for i = 1, #scopes do out[i] = account(scopes[i]) end
  latest.accounts = out
  return out
end

-- adds to the committed or the reserved amounts of an account
local function add(a, places, amounts, sign)
  for i = 1, AMOUNTS do
    local amount = amounts[i]
    if amount ~= 0 then
      local p = places[i]
      local sum = a[p] + sign * amount
      a[p] = sum > 0 and sum or 0
    end
  end
end

-- returns amounts: the first ones after index i, and the others, which may be missing, after index others (default: after the first
-- ones)
local function amountsAt(v, i, others)
  local o = others or i + FIRST
  return {v[i + 1], v[i + 2], v[i + 3], v[i + 4], v[i + 5], v[i + 6], v[o + 1] or 0, v[o + 2] or 0}
end

local function resource(id)
  local text = id ~= '' and get(2, id)
  if not text then return nil end
  local first, kind, team, key, about = string.match(text, '^([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n(.*)$')
  local n = numbers(first)
  return {version = n[1], since = n[2], pending = n[3], amounts = amountsAt(n, 3, 4 + FIRST), changed = n[4 + FIRST], kind = kind, team = team, key = key, about = about}
end

-- returns the format of a record's integers. The last two amounts, unknown to earlier versions, are omitted if both are 0.
local function formatOf(a) return a[SANDBOXES] + a[BOUNDED] > 0 and TWELVE or TEN end

local function saveResource(id, r)
  local a = r.amounts
  local first = format(formatOf(a), r.version, r.since, r.pending, a[1], a[2], a[3], a[4], a[5], a[6], r.changed, a[7], a[8])
  put(2, id, first .. '\n' .. r.kind .. '\n' .. r.team .. '\n' .. r.key .. '\n' .. r.about)
end

local function holdOf(id)
  local text = get(3, id)
  if not text then return nil end
  local first, kind, res, team, key, about, holder = string.match(text, '^([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n(.*)$')
  local n = numbers(first)
  return {at = n[1], open = n[2], wait = n[3], base = n[4], amounts = amountsAt(n, 4), kind = kind, resource = res, team = team, key = key, about = about, holder = holder}
end

local function saveHold(id, h)
  local a = h.amounts
  local first = format(formatOf(a), h.at, h.open, h.wait, h.base, a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8])
  put(3, id, first .. '\n' .. h.kind .. '\n' .. h.resource .. '\n' .. h.team .. '\n' .. h.key .. '\n' .. h.about .. '\n' .. h.holder)
end

-- reads the head, the number of writes of the gateway's store, the epochs of the keys, and the requested fields
local function open()
  for k = 1, 4 do read(k, wanted[k]) end
  local text, writes = get(1, ''), get(1, own)
  if not text then return end
  local first, token = string.match(text, '^([^\n]*)\n(.*)$')
  local n = numbers(first)
  ledger.epoch, ledger.seq, ledger.complete, ledger.repairs, ledger.token = n[1], n[2], n[3], n[4], token
  local w = writes and numbers(writes)
  if w and w[1] == ledger.epoch then ledger.writes = w[2] end
end

local function marked()
  return tonumber(get(2, '') or 0) == ledger.epoch and tonumber(get(3, '') or 0) == ledger.epoch
    and tonumber(get(4, '') or 0) == MARK + ledger.epoch
end

-- Closes the ledger if Redis has lost a part of it, and reports whether it has. Data was lost if the gateway knows a later state or
-- more writes of its own.
local function behind(epoch, seq)
  local older = ledger.epoch < epoch or ledger.epoch == epoch and (ledger.seq < seq or ledger.writes < written)
  if older or ledger.complete == 1 and not marked() then
    ledger.complete, ledger.token = 0, older and OLDER or ''
    return true
  end
  return false
end

-- sends a command with any number of values
local function send(command, key, values)
  for i = 1, #values, 1000 do redis.call(command, key, unpack(values, i, math.min(i + 999, #values))) end
end

-- writes all changes
local function write()
  for scope, a in pairs(accounts) do
    put(1, scope, format(a[29] + a[30] + a[31] + a[32] > 0 and LONG or SHORT, unpack(a)))
  end
  for k = 1, 3 do
    local set, gone, texts = {}, {}, stored[k]
    for field in pairs(changed[k]) do
      local text = texts[field]
      if text then
        set[#set + 1], set[#set + 2] = field, text
      else
        gone[#gone + 1] = field
      end
    end
    send('HSET', KEYS[k], set)
    send('HDEL', KEYS[k], gone)
  end
  local times = {}
  for id in pairs(changed[4]) do times[#times + 1], times[#times + 2] = stored[4][id], id end
  send('ZADD', KEYS[4], times)
  if #times > 0 and ledger.seq % 64 == 0 then
    redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', format('(%.0f', now - ENDED))
    redis.call('ZREMRANGEBYRANK', KEYS[4], 0, -MAXENDED - 1)
  end
  send('RPUSH', KEYS[5], changes)
end

-- counts a step that changes the ledger
local function count() ledger.seq, ledger.writes = ledger.seq + 1, ledger.writes + 1 end

-- writes the head and all changes
local function flush()
  put(1, '', format(HEAD, ledger.epoch, ledger.seq, ledger.complete, ledger.repairs) .. '\n' .. ledger.token)
  put(1, own, format(THREE, ledger.epoch, ledger.writes, now))
  write()
end

local function save()
  count()
  flush()
end

-- returns the first elements of every reply
local function head(status) return {status, ledger.epoch, ledger.seq, now, ledger.writes, intents.epoch, intents.writes} end

-- reports whether a hold has ended or a resource is gone
local function ended(id)
  local at = get(4, id)
  return at and tonumber(at) >= now - ENDED
end
