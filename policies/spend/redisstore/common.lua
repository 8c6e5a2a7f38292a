-- Functions that every script of the ledger begins with.
--
-- KEYS  all of one organisation, in one slot:
--   1  hash   '' -> head of the ledger; '@' and the name of a gateway's store -> its writes; scope -> account
--   2  hash   resource ID -> record
--   3  hash   hold ID -> hold
--   4  zset   IDs of ended holds, and 'gone:' with the IDs of removed resources, by time in ms
--   5  list   changes of rates since the last roll-up; see post.lua
--
-- ARGV  last: a JSON array with the starts and the end of the three days around now, then the same for two weeks, two
--       months and two quarters, then 0 and FOREVER, as package spend computes them
--       last but one: name of the gateway's store, and its number of writes as the gateway knows it
--
-- The epoch of the ledger is stored under '' in each of the first four keys, in the
-- fourth added to MARK, so that a script detects the loss of a single key.
--
-- A record is a line with a JSON array of integers, then lines of text:
--   head      epoch, sequence, complete (1 or 0), repairs / token of a rebuild that is running, or the reason
--             for which the ledger was closed: OLDER or SERVER
--   writes    epoch, number of writes in the epoch, time of the last write
--   account   time, six committed amounts, six reserved amounts, then for the day, the month, the week, the quarter and
--             the total: start, accrued, carry, then the other committed and reserved amounts. Earlier versions end with the month,
--             or the total
--   resource  version, since, pending, six amounts, changed, the other amounts if any is not 0 / kind / team / key / metadata (JSON)
--   hold      time, open (1 or 0), until, version of the resource, six amounts, the other amounts if any is not 0
--             / kind / resource / team / key / metadata (JSON) / holder ('' if unknown)
--   change    time, increase of the rate in micro-dollars per hour, one-time cost in micro-dollars / kind / resource
--             ('' for one-time costs) / team / key / metadata (JSON)
--
-- Amounts are micro-dollars per hour, counts, and micro-dollars, in the order of package
-- spend. Times are Unix milliseconds. All numbers and products are integers below 2^53; see cost.

local HOUR, DAY = 3600000, 86400000
local MAXBURN = 1e12
local AMOUNTS, FIRST, COST, SANDBOXES, BOUNDED = 8, 6, 6, 7, 8 -- FIRST: those that earlier versions know
local ENDED, JOBS, MAXENDED = HOUR, 23 * HOUR, 250000 -- retention of ended holds, what is added for jobs, and their largest number
local MARK, OLDER, SERVER = 1e15, 'older', 'server'

local numbers = cjson.decode

-- %.0f writes every digit of an integer; cjson.encode writes 14.
local FORMATS = {}
local function line(values)
  local n = #values
  if not FORMATS[n] then FORMATS[n] = '[' .. string.rep('%.0f,', n - 1) .. '%.0f]' end
  return string.format(FORMATS[n], unpack(values))
end

local ACCOUNT = '[' .. string.rep('%.0f,', 31) .. '%.0f]'

local DAYS, STALE = 4, -1
local calendar = numbers(ARGV[#ARGV])
if now < calendar[1] or now >= calendar[DAYS] then return {STALE, line({0, 0, now, 0, 0, 0})} end
-- day, week, month, quarter and total: the first and last place in the calendar, the place in an account, and that of the
-- period to begin with in accounts of earlier versions
local FOREVER = calendar[#calendar]
local periods = {{1, DAYS, 0, 0}, {DAYS + 1, DAYS + 3, 2, 0}, {DAYS + 4, DAYS + 6, 1, 1}, {DAYS + 7, DAYS + 9, 3, 1}, {DAYS + 10, DAYS + 11, 4, 1}}

-- starts and ends of the periods that contain a time; those of the last time are kept
local found, starts, stops
local function bounds(ms)
  if ms == found then return starts, stops end
  found, starts, stops = ms, {}, {}
  for i, p in ipairs(periods) do
    local start, stop
    for k = p[1], p[2] do
      start, stop = stop, calendar[k]
      if stop > ms then break end
    end
    if stop <= ms then start = stop end
    starts[i], stops[i] = start, stop
  end
  return starts, stops
end

-- cost of a rate over some milliseconds in two parts: micro-dollars, and micro-dollar milliseconds per hour. Rate and time are
-- split at whole hours: the products are at most 1e12 * 8760, 277777 * 3.6e6 and 3.6e6 * 3.6e6.
local function parts(rate, ms)
  if rate <= 0 or ms <= 0 then return 0, 0 end
  rate = math.min(rate, MAXBURN)
  local hours, rest = math.floor(ms / HOUR), ms % HOUR
  return rate * hours + math.floor(rate / HOUR) * rest, (rate % HOUR) * rest
end

-- cost of a rate over some milliseconds, rounded down, and the remainder, which includes
-- the remainder of an earlier cost
local function cost(rate, ms, carry)
  local micro, part = parts(rate, ms)
  part = part + carry
  return micro + math.floor(part / HOUR), part % HOUR
end

local function forecast(rate, ms)
  local micro, rest = cost(rate, ms, 0)
  if rest > 0 then micro = micro + 1 end
  return micro
end

-- stored and changed accounts by scope; see load
local stored, accounts = {}, {}

-- amounts: the first after a place, and the others after another place, by default after the first
local function amountsAt(values, from, others)
  local out = {}
  for i = 1, FIRST do out[i] = values[from + i] or 0 end
  for i = FIRST + 1, AMOUNTS do out[i] = values[(others or from + FIRST) + i - FIRST] or 0 end
  return out
end

-- an account by its integers, nil for a new one, with its accrual up to date. After a change of
-- the zone, the current period continues until the next period of the new zone begins.
local function upToDate(n)
  local a = {at = n and n[1] or now, periods = {}}
  local others = 1 + 2 * FIRST + 3 * #periods
  a.committed = amountsAt(n or {}, 1, others)
  a.reserved = amountsAt(n or {}, 1 + FIRST, others + AMOUNTS - FIRST)
  local to = math.max(now, a.at)
  local begin = bounds(to)
  local rate = a.committed[1] + a.reserved[1]
  local micro, part = parts(rate, to - a.at)
  for i, p in ipairs(periods) do
    local start, accrued, rest = begin[i], 0, 0
    if n and start > a.at then
      accrued, rest = cost(rate, to - start, 0)
    elseif n then
      local o = 1 + 2 * FIRST + 3 * p[3]
      if n[o + 1] then start = n[o + 1] else o = 1 + 2 * FIRST + 3 * p[4] end
      rest = n[o + 3] + part
      accrued, rest = n[o + 2] + micro + math.floor(rest / HOUR), rest % HOUR
    end
    a.periods[i] = {start = start, accrued = accrued, carry = rest}
  end
  a.at = to
  return a
end

-- reads the accounts of scopes in one command
local function load(scopes)
  local missing = {}
  for _, scope in ipairs(scopes) do
    if stored[scope] == nil then missing[#missing + 1] = scope end
  end
  if #missing == 0 then return end
  for i, text in ipairs(redis.call('HMGET', KEYS[1], unpack(missing))) do stored[missing[i]] = text end
end

-- the account of a scope
local function account(scope)
  if not accounts[scope] then
    load({scope})
    accounts[scope] = upToDate(stored[scope] and numbers(stored[scope]))
  end
  return accounts[scope]
end

local function scopesOf(team, key)
  local out = {}
  if key ~= '' then out[#out + 1] = 'key:' .. key end
  if team ~= '' then out[#out + 1] = 'team:' .. team end
  out[#out + 1] = 'org'
  return out
end

local function each(team, key, change)
  local scopes = scopesOf(team, key)
  load(scopes)
  for _, scope in ipairs(scopes) do change(account(scope)) end
end

local function add(to, amounts, sign)
  for i = 1, AMOUNTS do to[i] = math.max(0, to[i] + sign * amounts[i]) end
end

-- accrues a rate from one time to another within the periods; a negative rate
-- lowers what has accrued
local function correct(a, rate, from, to)
  for _, p in ipairs(a.periods) do
    local ms = math.min(a.at, to) - math.max(from, p.start)
    if rate >= 0 then
      local micro, rest = cost(rate, ms, p.carry)
      p.accrued, p.carry = p.accrued + micro, rest
    else
      local micro, rest = cost(-rate, ms, 0)
      p.accrued, p.carry = p.accrued - micro, p.carry - rest
      if p.carry < 0 then p.accrued, p.carry = p.accrued - 1, p.carry + HOUR end
      if p.accrued < 0 then p.accrued, p.carry = 0, 0 end
    end
  end
end

local function resource(id)
  if id == '' then return nil end
  local text = redis.call('HGET', KEYS[2], id)
  if not text then return nil end
  local first, kind, team, key, about = string.match(text, '^(.-)\n(.-)\n(.-)\n(.-)\n(.*)$')
  local n = numbers(first)
  return {version = n[1], since = n[2], pending = n[3], amounts = amountsAt(n, 3, 4 + FIRST), changed = n[4 + FIRST], kind = kind, team = team, key = key, about = about}
end

-- a line of integers that ends with the amounts that earlier versions do not know
local function withOthers(values, a)
  for i = FIRST + 1, AMOUNTS do
    if a[SANDBOXES] + a[BOUNDED] > 0 then values[#values + 1] = a[i] end
  end
  return line(values)
end

local function saveResource(id, r)
  local a = r.amounts
  local first = withOthers({r.version, r.since, r.pending, a[1], a[2], a[3], a[4], a[5], a[6], r.changed}, a)
  redis.call('HSET', KEYS[2], id, table.concat({first, r.kind, r.team, r.key, r.about}, '\n'))
end

local function holdOf(id)
  local text = redis.call('HGET', KEYS[3], id)
  if not text then return nil end
  local first, kind, res, team, key, about, holder = string.match(text, '^(.-)\n(.-)\n(.-)\n(.-)\n(.-)\n(.-)\n(.*)$')
  local n = numbers(first)
  return {at = n[1], open = n[2], wait = n[3], base = n[4], amounts = amountsAt(n, 4), kind = kind, resource = res, team = team, key = key, about = about, holder = holder}
end

local function saveHold(id, h)
  local a = h.amounts
  local first = withOthers({h.at, h.open, h.wait, h.base, a[1], a[2], a[3], a[4], a[5], a[6]}, a)
  redis.call('HSET', KEYS[3], id, table.concat({first, h.kind, h.resource, h.team, h.key, h.about, h.holder}, '\n'))
end

-- The head, and the number of writes of the gateway's store. If the gateway knows a later state,
-- or more writes of its own, then Redis has lost data.
local writer, written = string.match(ARGV[#ARGV - 1], '^(%S+) (%d+)$')
local ledger = {epoch = 0, seq = 0, complete = 0, repairs = 0, token = '', writes = 0}
do
  local texts = redis.call('HMGET', KEYS[1], '', '@' .. writer)
  if texts[1] then
    local first, token = string.match(texts[1], '^(.-)\n(.*)$')
    local n = numbers(first)
    ledger.epoch, ledger.seq, ledger.complete, ledger.repairs, ledger.token = n[1], n[2], n[3], n[4], token
    local own = texts[2] and numbers(texts[2])
    if own and own[1] == ledger.epoch then ledger.writes = own[2] end
  end
end

local function mark()
  local epoch = string.format('%.0f', ledger.epoch)
  redis.call('HSET', KEYS[2], '', epoch)
  redis.call('HSET', KEYS[3], '', epoch)
  redis.call('ZADD', KEYS[4], string.format('%.0f', MARK + ledger.epoch), '')
end

local function marked()
  return tonumber(redis.call('HGET', KEYS[2], '') or 0) == ledger.epoch and tonumber(redis.call('HGET', KEYS[3], '') or 0) == ledger.epoch
    and tonumber(redis.call('ZSCORE', KEYS[4], '') or 0) == MARK + ledger.epoch
end

-- closes the ledger if Redis has lost a part of it, and reports whether it has
local function behind(epoch, seq)
  local older = ledger.epoch < epoch or ledger.epoch == epoch and (ledger.seq < seq or ledger.writes < tonumber(written))
  if older or ledger.complete == 1 and not marked() then
    ledger.complete, ledger.token = 0, older and OLDER or ''
    return true
  end
  return false
end

local function hset(key, fields)
  for i = 1, #fields, 1000 do redis.call('HSET', key, unpack(fields, i, math.min(i + 999, #fields))) end
end

-- writes all changed accounts, after the given fields
local function saveAccounts(fields)
  for scope, a in pairs(accounts) do
    local c, r = a.committed, a.reserved
    local d, w, m, q, t = unpack(a.periods)
    fields[#fields + 1] = scope
    fields[#fields + 1] = string.format(ACCOUNT, a.at, c[1], c[2], c[3], c[4], c[5], c[6], r[1], r[2], r[3], r[4], r[5], r[6],
      d.start, d.accrued, d.carry, m.start, m.accrued, m.carry, w.start, w.accrued, w.carry, q.start, q.accrued, q.carry, t.start, t.accrued, t.carry,
      c[7], c[8], r[7], r[8])
  end
  hset(KEYS[1], fields)
end

-- writes the head and all changed accounts
local function save()
  ledger.seq, ledger.writes = ledger.seq + 1, ledger.writes + 1
  saveAccounts({
    '', line({ledger.epoch, ledger.seq, ledger.complete, ledger.repairs}) .. '\n' .. ledger.token,
    '@' .. writer, line({ledger.epoch, ledger.writes, now}),
  })
end

-- the first elements of every reply
local function head(status) return {status, line({ledger.epoch, ledger.seq, now, ledger.writes, intents.epoch, intents.writes})} end

-- reports whether a hold has ended, or a resource is gone
local function ended(id)
  local at = redis.call('ZSCORE', KEYS[4], id)
  return at and tonumber(at) >= now - ENDED
end

-- remembers for an hour that a hold has ended, or that a resource is gone. The platform reports the result of a job for longer.
local function forget(id)
  local at = now
  if string.sub(id, 1, 4) == 'job ' then at = now + JOBS end
  redis.call('ZADD', KEYS[4], string.format('%.0f', at), id)
  if ledger.seq % 64 == 0 then
    redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', string.format('(%.0f', now - ENDED))
    redis.call('ZREMRANGEBYRANK', KEYS[4], 0, -MAXENDED - 1)
  end
end

-- records a change of a resource's rate from a time on, or a one-time cost
local function note(id, r, rate, at, once)
  if rate == 0 and once == 0 then return end
  redis.call('RPUSH', KEYS[5], table.concat({line({at, rate, once}), r.kind, id, r.team, r.key, r.about}, '\n'))
end

-- takes the reservation of a hold off the accounts
local function unreserve(h)
  each(h.team, h.key, function(a)
    add(a.reserved, h.amounts, -1)
    correct(a, -h.amounts[1], h.at, a.at)
  end)
  local about = resource(h.resource)
  if about then
    about.pending = math.max(0, about.pending - 1)
    saveResource(h.resource, about)
  end
end

-- accrues a one-time cost
local function spend(h, micro)
  each(h.team, h.key, function(a)
    for _, p in ipairs(a.periods) do p.accrued = p.accrued + micro end
  end)
  note('', h, 0, account('org').at, micro)
end

-- replaces one record of a resource by another; either may be nil. from is when the rate changed, if it was earlier than now, but not
-- before the cost of old began; otherwise 0
local function replace(id, old, new, from)
  local at = account('org').at
  if from > 0 then at = math.min(at, math.max(from, old and old.since or 0)) end
  if old and new and old.team == new.team and old.key == new.key and from == 0 then
    note(id, new, new.amounts[1] - old.amounts[1], at, 0)
  else
    if old then note(id, old, -old.amounts[1], at, 0) end
    if new then note(id, new, new.amounts[1], at, 0) end
  end
  local function enter(r, sign)
    each(r.team, r.key, function(a)
      add(a.committed, r.amounts, sign)
      if at < a.at then correct(a, sign * r.amounts[1], at, a.at) end
    end)
  end
  if old then enter(old, -1) end
  if new then
    enter(new, 1)
    if from > 0 and not old then new.since = at end
    new.version = ledger.seq + 1 -- the sequence that save writes
    new.changed = old and line(old.amounts) == line(new.amounts) and old.changed or now
    saveResource(id, new)
  elseif old then
    redis.call('HDEL', KEYS[2], id)
  end
end
