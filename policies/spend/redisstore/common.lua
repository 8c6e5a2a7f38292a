-- What all scripts of the ledger share; it stands before each of them.
--
-- KEYS  of one organisation, all in one slot:
--   1  hash   '' -> the ledger's own record; scope -> account
--   2  hash   id of a resource -> record
--   3  hash   id of a hold -> hold
--   4  zset   ids of holds that have ended, by when, in ms
--   5  list   what has changed since the last roll-up; see post.lua
--
-- ARGV  the last one: when the three days around the present begin and when they end,
--       then the same of two months, all as the package spend has them
--       the one before it: the gateway, and how often it knows that it has written
--
-- Of the first four keys each has the epoch under '', so that the loss of one of them
-- alone is noticed: of the first it begins the ledger's own record, and in the fourth
-- it is added to MARK.
--
-- A record is a line of integers, then lines of text:
--   ledger    epoch, sequence, complete (1 or 0), epoch and repairs in it, when a version wrote that
--             has only the first three, in the last day / token of a rebuild under
--             way, or OLDER or SERVER, why it was closed / for each gateway that has written in the last day, how
--             often in this epoch, when last, and its name
--   account   at, six amounts committed, six reserved, and for the day and the
--             month each: start, accrued, carry
--   resource  version, since, pending, six amounts, changed / kind / team / key / about
--   hold      at, open (1 or 0), until, version of the resource, six amounts
--             / kind / resource / team / key / about / holder ('' if it is not known)
--   change    at, micro-dollars per hour more, micro-dollars once / kind / resource
--             ('' for what cost once) / team / key / about
--
-- Amounts are those of the package spend: micro-dollars per hour and counts. Times
-- are Unix milliseconds. Every number is an integer below 2^53, and so is every
-- product; see cost.

local HOUR = 3600000
local MAXBURN = 1e12
local AMOUNTS, COST = 6, 6
local ENDED, MAXENDED = 3600000, 250000 -- how long it is remembered that a hold has ended, and of how many

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)

local function numbers(line)
  local out = {}
  for n in string.gmatch(line, '%S+') do out[#out + 1] = tonumber(n) end
  return out
end

-- integers are written by %.0f: Lua's own format is exact to 14 digits only
local function line(values)
  local out = {}
  for i, v in ipairs(values) do out[i] = string.format('%.0f', v) end
  return table.concat(out, ' ')
end

local DAYS, STALE = 4, -1
local calendar = numbers(ARGV[#ARGV])
if now < calendar[1] or now >= calendar[DAYS] then return {STALE, line({0, 0, now, 0})} end
local periods = {{1, DAYS}, {DAYS + 1, #calendar}}

-- when a period begins and ends that a time is in
local function bounds(period, ms)
  local start, stop
  for i = period[1], period[2] do
    stop = calendar[i]
    if stop > ms then return start, stop end
    start = stop
  end
  return start, stop
end

local function read(key, field)
  local text = redis.call('HGET', key, field)
  if not text then return nil end
  local lines = {}
  for l in string.gmatch(text .. '\n', '(.-)\n') do lines[#lines + 1] = l end
  return numbers(lines[1]), lines
end

-- what a rate comes to in some milliseconds: rounded down, and the remainder, to
-- which that of an earlier cost is added. The rate is split at whole hours and the
-- time, too: at most 1e12 * 744, 277777 * 3.6e6 and 3.6e6 * 3.6e6.
local function cost(rate, ms, carry)
  if rate <= 0 or ms <= 0 then return 0, carry end
  rate = math.min(rate, MAXBURN)
  local hours, rest = math.floor(ms / HOUR), ms % HOUR
  local part = (rate % HOUR) * rest + carry
  return rate * hours + math.floor(rate / HOUR) * rest + math.floor(part / HOUR), part % HOUR
end

local function forecast(rate, ms)
  local micro, rest = cost(rate, ms, 0)
  if rest > 0 then micro = micro + 1 end
  return micro
end

-- accounts, as they were read and have been changed, by scope
local accounts = {}

-- an account, by its integers or new, with its accrual up to date. In another zone, the
-- period under way goes on until the next one begins there.
local function upToDate(n)
  local a = {at = n and n[1] or now, committed = {}, reserved = {}, periods = {}}
  for i = 1, AMOUNTS do
    a.committed[i] = n and n[1 + i] or 0
    a.reserved[i] = n and n[1 + AMOUNTS + i] or 0
  end
  local to = math.max(now, a.at)
  for i, p in ipairs(periods) do
    local o = 1 + 2 * AMOUNTS + 3 * (i - 1)
    local start, accrued, carry, from = bounds(p, to), 0, 0, a.at
    if n and start > a.at then
      from = start
    elseif n then
      start, accrued, carry = n[o + 1], n[o + 2], n[o + 3]
    end
    local micro, rest = cost(a.committed[1] + a.reserved[1], to - from, carry)
    a.periods[i] = {start = start, accrued = accrued + micro, carry = rest}
  end
  a.at = to
  return a
end

-- the account of a scope
local function account(scope)
  if not accounts[scope] then accounts[scope] = upToDate(read(KEYS[1], scope)) end
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
  for _, scope in ipairs(scopesOf(team, key)) do change(account(scope)) end
end

local function add(to, amounts, sign)
  for i = 1, AMOUNTS do to[i] = math.max(0, to[i] + sign * amounts[i]) end
end

-- accrues a rate from a time to another, as far as that is in the periods; takes a
-- negative one off
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

local function saveAccounts()
  for scope, a in pairs(accounts) do
    local v = {a.at}
    for i = 1, AMOUNTS do v[#v + 1] = a.committed[i] end
    for i = 1, AMOUNTS do v[#v + 1] = a.reserved[i] end
    for _, p in ipairs(a.periods) do v[#v + 1], v[#v + 2], v[#v + 3] = p.start, p.accrued, p.carry end
    redis.call('HSET', KEYS[1], scope, line(v))
  end
end

local function amountsAt(values, from)
  local out = {}
  for i = 1, AMOUNTS do out[i] = values[from + i] end
  return out
end

local function resource(id)
  if id == '' then return nil end
  local n, l = read(KEYS[2], id)
  if not n then return nil end
  return {version = n[1], since = n[2], pending = n[3], amounts = amountsAt(n, 3), changed = n[4 + AMOUNTS] or n[2], kind = l[2], team = l[3], key = l[4], about = l[5]}
end

local function saveResource(id, r)
  local v = {r.version, r.since, r.pending}
  for i = 1, AMOUNTS do v[#v + 1] = r.amounts[i] end
  v[#v + 1] = r.changed
  redis.call('HSET', KEYS[2], id, table.concat({line(v), r.kind, r.team, r.key, r.about}, '\n'))
end

local function holdOf(id)
  local n, l = read(KEYS[3], id)
  if not n then return nil end
  return {at = n[1], open = n[2], wait = n[3], base = n[4], amounts = amountsAt(n, 4), kind = l[2], resource = l[3], team = l[4], key = l[5], about = l[6], holder = l[7] or ''}
end

local function saveHold(id, h)
  local v = {h.at, h.open, h.wait, h.base}
  for i = 1, AMOUNTS do v[#v + 1] = h.amounts[i] end
  redis.call('HSET', KEYS[3], id, table.concat({line(v), h.kind, h.resource, h.team, h.key, h.about, h.holder}, '\n'))
end

-- the ledger's own record. A gateway that knows of a later state, or to have written
-- more often than this one has it, tells that the store has lost something. A version
-- that marks no keys drops how often gateways have written and may drop marks: marks are
-- made anew when it has written, and for a day gateways believe what they know of writes.
local MARK, OLDER, SERVER, DAY = 1e15, 'older', 'server', 24 * HOUR
local writer, written = string.match(ARGV[#ARGV - 1], '^(%S+) (%d+)$')
local ledger = {epoch = 0, seq = 0, complete = 0, repairs = 0, mixed = 0, unmarked = false, token = '', writes = 0, others = {}}
do
  local n, l = read(KEYS[1], '')
  if n then
    ledger.epoch, ledger.seq, ledger.complete, ledger.repairs, ledger.token = n[1], n[2], n[3], n[4] or 0, l[2]
    ledger.unmarked = n[4] == nil
    ledger.mixed = ledger.unmarked and now or n[5] or 0
    if ledger.mixed <= now - DAY then ledger.mixed = 0 end
    for i = 3, #l do
      local count, at, name = string.match(l[i], '^(%d+) (%d+) (.*)$')
      if name == writer then
        ledger.writes = tonumber(count)
      elseif tonumber(at) > now - DAY then
        ledger.others[#ledger.others + 1] = l[i]
      end
    end
    if ledger.mixed > 0 then ledger.writes = math.max(ledger.writes, tonumber(written)) end
  end
end

local function mark()
  local epoch = line({ledger.epoch})
  redis.call('HSET', KEYS[2], '', epoch)
  redis.call('HSET', KEYS[3], '', epoch)
  redis.call('ZADD', KEYS[4], line({MARK + ledger.epoch}), '')
end

local function marked()
  return tonumber(redis.call('HGET', KEYS[2], '') or 0) == ledger.epoch and tonumber(redis.call('HGET', KEYS[3], '') or 0) == ledger.epoch
    and tonumber(redis.call('ZSCORE', KEYS[4], '') or 0) == MARK + ledger.epoch
end

-- closes the ledger if the store has lost something, and reports whether it has
local function behind(epoch, seq)
  local older = ledger.epoch < epoch or ledger.epoch == epoch and (ledger.seq < seq or ledger.writes < tonumber(written))
  if older or ledger.complete == 1 and not ledger.unmarked and not marked() then
    ledger.complete, ledger.token = 0, older and OLDER or ''
    return true
  end
  return false
end

local function saveLedger()
  if ledger.unmarked then mark() end
  ledger.seq, ledger.writes = ledger.seq + 1, ledger.writes + 1
  local own = line({ledger.writes, now}) .. ' ' .. writer
  redis.call('HSET', KEYS[1], '', table.concat({line({ledger.epoch, ledger.seq, ledger.complete, ledger.repairs, ledger.mixed}), ledger.token, own, unpack(ledger.others)}, '\n'))
end

-- the beginning of every reply
local function head(status) return {status, line({ledger.epoch, ledger.seq, now, ledger.writes})} end

-- notes that a resource costs more per hour from a time on, or less, or that
-- something has cost an amount once
local function note(id, r, rate, at, once)
  if rate == 0 and once == 0 then return end
  redis.call('RPUSH', KEYS[5], table.concat({line({at, rate, once}), r.kind, id, r.team, r.key, r.about}, '\n'))
end

-- puts a record in the place of another one of the same resource; either may be nil
local function replace(id, old, new)
  local at = account('org').at
  if old and new and old.team == new.team and old.key == new.key then
    note(id, new, new.amounts[1] - old.amounts[1], at, 0)
  else
    if old then note(id, old, -old.amounts[1], at, 0) end
    if new then note(id, new, new.amounts[1], at, 0) end
  end
  if old then each(old.team, old.key, function(a) add(a.committed, old.amounts, -1) end) end
  if new then
    each(new.team, new.key, function(a) add(a.committed, new.amounts, 1) end)
    new.version = ledger.seq + 1 -- as saveLedger is about to write
    new.changed = old and line(old.amounts) == line(new.amounts) and old.changed or now
    saveResource(id, new)
  elseif old then
    redis.call('HDEL', KEYS[2], id)
  end
end
