-- Ends a hold, or opens it.
--
-- KEYS  6 to 9  if there are: those of the intent that goes on; see finish
--
-- ARGV  1  epoch and sequence seen, end (0 release, 1 open, 2 commit), how long an
--          open hold waits in ms, gone (1 or 0), full (1 or 0), six amounts of the
--          resource
--       2  id of the hold   3  kind   4  resource ('': what costs once accrues)
--       5  team   6  key   7  about   8  id that an open hold has from now on ('': its own)
--       9 to 14  what finish takes
--
-- Returns {status, epoch, sequence and clock}; the status is always 0.

local RELEASE, OPEN, COMMIT = 0, 1, 2

local given = numbers(ARGV[1])
local how, wait, gone, full, amounts = given[3], given[4], given[5] == 1, given[6] == 1, amountsAt(given, 6)
local id, res, as = ARGV[2], ARGV[4], ARGV[8]

if KEYS[6] then finish(6, 9) end
local lost = behind(given[1], given[2])
local ended, held = redis.call('ZSCORE', KEYS[4], id), holdOf(id)
if ended and not held or how == OPEN and not held then
  if lost then saveLedger() end
  return head(0)
end

local function forget(name)
  redis.call('ZADD', KEYS[4], now, name)
  redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', string.format('(%.0f', now - ENDED))
  redis.call('ZREMRANGEBYRANK', KEYS[4], 0, -MAXENDED - 1)
  redis.call('HDEL', KEYS[3], name)
end

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

-- most is what the call of a hold can cost once.
local function most(h)
  local ok, about = pcall(cjson.decode, h.about)
  local n = ok and type(about) == 'table' and tonumber(about.most) or 0
  return math.max(h.amounts[COST], n)
end

local function spend(h, micro)
  each(h.team, h.key, function(a)
    for _, p in ipairs(a.periods) do p.accrued = p.accrued + micro end
  end)
  note('', h, 0, account('org').at, micro)
end

if how == OPEN then
  held.open, held.wait = 1, now + wait
  if as ~= '' and as ~= id then
    local other = holdOf(as)
    if other then
      forget(as)
      unreserve(other)
      spend(other, most(other))
      saveAccounts()
    end
    forget(id)
    id = as
  end
  saveHold(id, held)
  saveLedger()
  return head(0)
end

forget(id)
if held then unreserve(held) end

if how == COMMIT and res == '' then
  if held then spend(held, full and most(held) or amounts[COST]) end
elseif how == COMMIT then
  local old = resource(res)
  local new = {since = now, pending = 0, amounts = amounts, kind = ARGV[3], team = ARGV[5], key = ARGV[6], about = ARGV[7]}
  -- whether no other change of the resource overlapped this one: if one did, the
  -- order is not known, and nothing is lowered
  local alone = held ~= nil
  if held then new.kind, new.team, new.key, new.about = held.kind, held.team, held.key, held.about end
  if old then
    new.pending, new.since = old.pending, old.since
    if not held or held.resource ~= '' then
      new.team, new.key, new.about = old.team, old.key, old.about
      alone = held ~= nil and old.version == held.base and old.pending == 0
    end
  end
  if gone then
    new = nil -- what was removed does not come back: nobody else's change is lowered
    alone = alone or not held and old ~= nil and old.pending == 0
  elseif old and not alone then
    for i = 1, AMOUNTS do new.amounts[i] = math.max(new.amounts[i], old.amounts[i]) end
  end
  if new or old and alone then
    replace(res, old, new)
    if held and new then
      local before = old and old.team == new.team and old.key == new.key and old.amounts[1] or 0
      local more = math.max(0, new.amounts[1] - before)
      each(new.team, new.key, function(a) correct(a, more, held.at, a.at) end)
      note(res, new, more, held.at, 0)
      note(res, new, -more, account('org').at, 0)
    end
  end
end
saveAccounts()
saveLedger()
return head(0)
