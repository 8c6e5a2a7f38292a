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
-- spend. Times are Unix milliseconds. All numbers and products are integers below 2^53; see parts.

local HOUR, DAY = 3600000, 86400000
local MAXBURN = 1e12
local AMOUNTS, FIRST, COST, SANDBOXES, BOUNDED = 8, 6, 6, 7, 8 -- FIRST: those that earlier versions know
local ENDED, JOBS, MAXENDED = HOUR, 23 * HOUR, 250000 -- retention of ended holds, what is added for jobs, and their largest number
local MARK, OLDER, SERVER = 1e15, 'older', 'server'

local numbers = cjson.decode
local given = numbers(ARGV[1])

-- formats of records; cjson.encode writes 14 digits of a number
local function line(n) return exact('[' .. string.rep('%d,', n - 1) .. '%d]') end
local HEAD, TEN, TWELVE, ACCOUNT = line(4), line(10), line(12), line(32)

-- places in an account: those of the committed and the reserved amounts, and the starts of the day, the week, the month, the
-- quarter and the total, each of which is followed by what has accrued and the carry
local COMMITTED, RESERVED = {2, 3, 4, 5, 6, 7, 29, 30}, {8, 9, 10, 11, 12, 13, 31, 32}
local PERIODS = {14, 20, 17, 23, 26}

local DAYS, STALE = 4, -1
local calendar = numbers(ARGV[#ARGV])
if now < calendar[1] or now >= calendar[DAYS] then return {STALE, 0, 0, now, 0, 0, 0} end
local FOREVER = calendar[#calendar]
local FROM, LAST = {1, 5, 8, 11, 14}, {DAYS, 7, 10, 13, 15} -- places of the periods in the calendar

-- starts and ends of the periods that contain a time; those of the last time are kept
local found, starts, stops
local function bounds(ms)
  if ms == found then return starts, stops end
  found, starts, stops = ms, {}, {}
  for i = 1, #FROM do
    local k, last = FROM[i], LAST[i]
    while k < last and calendar[k + 1] <= ms do k = k + 1 end
    starts[i], stops[i] = calendar[k], calendar[math.min(k + 1, last)]
  end
  return starts, stops
end

-- cost of a rate over some milliseconds in two parts: micro-dollars, and micro-dollar milliseconds per hour. Rate and time are
-- split at whole hours: the products are at most 1e12 * 8760, 277777 * 3.6e6 and 3.6e6 * 3.6e6.
local function parts(rate, ms)
  if rate <= 0 or ms <= 0 then return 0, 0 end
  if rate > MAXBURN then rate = MAXBURN end
  local hours, rest = floor(ms / HOUR), ms % HOUR
  return rate * hours + floor(rate / HOUR) * rest, (rate % HOUR) * rest
end

-- cost of a rate over some milliseconds, rounded up
local function forecast(rate, ms)
  local micro, part = parts(rate, ms)
  return micro + math.ceil(part / HOUR)
end

-- What was read of the first four keys, by field, and the fields that have changed. Nothing is written before write.
local stored, changed = {{}, {}, {}, {}}, {{}, {}, {}, {}}
local READS = {'HMGET', 'HMGET', 'HMGET', 'ZMSCORE'}
local writer, written = string.match(ARGV[#ARGV - 1], '^(%S+) (%d+)$')
local own = '@' .. writer
local wanted = {{'', own}, {''}, {''}, {''}} -- what open reads

-- adds a field to what open reads
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

-- adds what an account lacks: a new one all periods, one of an earlier version the week, the quarter and the total, and both
-- the other amounts
local function complete(n, begin)
  for i, p in ipairs(PERIODS) do
    local from = i == 2 and PERIODS[1] or PERIODS[3]
    if not n[p] then n[p], n[p + 1], n[p + 2] = begin[i], n[from + 1] or 0, n[from + 2] or 0 end
  end
  for i = FIRST + 1, AMOUNTS do n[COMMITTED[i]], n[RESERVED[i]] = 0, 0 end
end

-- brings an account up to date, which is the array of its integers; nil and false are a new one. After a change of
-- the zone, the current period continues until the next period of the new zone begins.
local function upToDate(n)
  n = n or {now, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
  local at = n[1]
  local to = math.max(now, at)
  local begin = bounds(to)
  if not n[RESERVED[AMOUNTS]] then complete(n, begin) end
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

-- accounts that were changed, by scope
local accounts = {}

-- the account of a scope, which is written only if it is one of accounts
local function look(scope)
  local text = not accounts[scope] and get(1, scope)
  return accounts[scope] or upToDate(text and numbers(text))
end

local function account(scope)
  accounts[scope] = look(scope)
  return accounts[scope]
end

local function scopesOf(team, key)
  local out = {}
  if key ~= '' then out[1] = 'key:' .. key end
  if team ~= '' then out[#out + 1] = 'team:' .. team end
  out[#out + 1] = 'org'
  return out
end

-- the accounts of an owner's scopes, of which the unknown ones are read in one command
local function accountsOf(team, key)
  local out, missing = scopesOf(team, key), {}
  for _, scope in ipairs(out) do
    if stored[1][scope] == nil then missing[#missing + 1] = scope end
  end
  if #missing > 0 then read(1, missing) end
  for i = 1, #out do out[i] = account(out[i]) end
  return out
end

-- adds to the committed or the reserved amounts of an account
local function add(a, places, amounts, sign)
  for i = 1, AMOUNTS do
    local p = places[i]
    local sum = a[p] + sign * amounts[i]
    a[p] = sum > 0 and sum or 0
  end
end

-- accrues a rate from one time to another within the periods; a negative rate
-- lowers what has accrued
local function correct(a, rate, from, to)
  local sign, last, micro, part = rate < 0 and -1 or 1, nil, 0, 0
  to = math.min(a[1], to)
  for i = 1, #PERIODS do
    local p = PERIODS[i]
    local ms = to - math.max(from, a[p])
    if ms ~= last then -- most periods began before
      last, micro, part = ms, parts(sign * rate, ms)
    end
    local rest = a[p + 2] + sign * part
    local accrued = a[p + 1] + sign * micro + floor(rest / HOUR)
    if accrued < 0 then accrued, rest = 0, 0 end
    a[p + 1], a[p + 2] = accrued, rest % HOUR
  end
end

-- amounts: the first after a place, and the others, which may be missing, after another place, by default after the first
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

-- the format of the integers of a record, of which the last two are the amounts that earlier versions do not know; it leaves
-- them out if both are 0
local function formatOf(a) return a[SANDBOXES] + a[BOUNDED] > 0 and TWELVE or TEN end

local function saveResource(id, r)
  local a = r.amounts
  local first = format(formatOf(a), r.version, r.since, r.pending, a[1], a[2], a[3], a[4], a[5], a[6], r.changed, a[7], a[8])
  put(2, id, table.concat({first, r.kind, r.team, r.key, r.about}, '\n'))
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
  put(3, id, table.concat({first, h.kind, h.resource, h.team, h.key, h.about, h.holder}, '\n'))
end

local ledger = {epoch = 0, seq = 0, complete = 0, repairs = 0, token = '', writes = 0}

-- reads the head, the number of writes of the gateway's store, the epochs in the keys, and the wanted fields
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

local function mark()
  local epoch = format('%.0f', ledger.epoch)
  put(2, '', epoch)
  put(3, '', epoch)
  put(4, '', format('%.0f', MARK + ledger.epoch))
end

local function marked()
  return tonumber(get(2, '') or 0) == ledger.epoch and tonumber(get(3, '') or 0) == ledger.epoch
    and tonumber(get(4, '') or 0) == MARK + ledger.epoch
end

-- Closes the ledger if Redis has lost a part of it, and reports whether it has: if the gateway knows a later state,
-- or more writes of its own, then Redis has lost data.
local function behind(epoch, seq)
  local older = ledger.epoch < epoch or ledger.epoch == epoch and (ledger.seq < seq or ledger.writes < tonumber(written))
  if older or ledger.complete == 1 and not marked() then
    ledger.complete, ledger.token = 0, older and OLDER or ''
    return true
  end
  return false
end

-- changes of rates and one-time costs, which write writes
local changes = {}

-- sends a command with any number of values
local function send(command, key, values)
  for i = 1, #values, 1000 do redis.call(command, key, unpack(values, i, math.min(i + 999, #values))) end
end

-- writes all changes
local function write()
  for scope, a in pairs(accounts) do put(1, scope, format(ACCOUNT, unpack(a))) end
  for k = 1, 3 do
    local set, gone = {}, {}
    for field in pairs(changed[k]) do
      local text = stored[k][field]
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

-- the first elements of every reply
local function head(status) return {status, ledger.epoch, ledger.seq, now, ledger.writes, intents.epoch, intents.writes} end

-- reports whether a hold has ended, or a resource is gone
local function ended(id)
  local at = get(4, id)
  return at and tonumber(at) >= now - ENDED
end

-- remembers for an hour that a hold has ended, or that a resource is gone. The platform reports the result of a job for longer.
local function forget(id)
  local at = now
  if string.sub(id, 1, 4) == 'job ' then at = now + JOBS end
  put(4, id, format('%.0f', at))
end

-- records a change of a resource's rate from a time on, or a one-time cost
local function note(id, r, rate, at, once)
  if rate == 0 and once == 0 then return end
  changes[#changes + 1] = table.concat({format(THREE, at, rate, once), r.kind, id, r.team, r.key, r.about}, '\n')
end

-- takes the reservation of a hold off the accounts
local function unreserve(h)
  for _, a in ipairs(accountsOf(h.team, h.key)) do
    add(a, RESERVED, h.amounts, -1)
    correct(a, -h.amounts[1], h.at, a[1])
  end
  local about = resource(h.resource)
  if about then
    about.pending = math.max(0, about.pending - 1)
    saveResource(h.resource, about)
  end
end

-- accrues a one-time cost
local function spend(h, micro)
  for _, a in ipairs(accountsOf(h.team, h.key)) do
    for _, p in ipairs(PERIODS) do a[p + 1] = a[p + 1] + micro end
  end
  note('', h, 0, account('org')[1], micro)
end

local function same(a, b)
  for i = 1, AMOUNTS do
    if a[i] ~= b[i] then return false end
  end
  return true
end

-- adds a record to the accounts of its owner from a time on, or, with the sign -1, takes it off
local function enter(r, sign, at)
  for _, a in ipairs(accountsOf(r.team, r.key)) do
    add(a, COMMITTED, r.amounts, sign)
    if at < a[1] then correct(a, sign * r.amounts[1], at, a[1]) end
  end
end

-- replaces one record of a resource by another; either may be nil. from is when the rate changed, if it was earlier than now, but not
-- before the cost of old began; otherwise 0
local function replace(id, old, new, from)
  local at = account('org')[1]
  if from > 0 then at = math.min(at, math.max(from, old and old.since or 0)) end
  if old and new and old.team == new.team and old.key == new.key and from == 0 then
    note(id, new, new.amounts[1] - old.amounts[1], at, 0)
  else
    if old then note(id, old, -old.amounts[1], at, 0) end
    if new then note(id, new, new.amounts[1], at, 0) end
  end
  if old then enter(old, -1, at) end
  if new then
    enter(new, 1, at)
    if from > 0 and not old then new.since = at end
    new.version = ledger.seq + 1 -- the sequence after count
    new.changed = old and same(old.amounts, new.amounts) and old.changed or now
    saveResource(id, new)
  elseif old then
    put(2, id, false)
  end
end
