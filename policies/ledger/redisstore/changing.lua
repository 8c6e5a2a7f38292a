-- Functions that end holds, and that change resources and accrued costs.
--
-- A change takes effect now, even if the clock has stepped back and the accounts have accrued costs up to a later time: it then changes
-- the cost that has accrued up to that time.

-- accrues a rate between two times, limited to the current periods; a negative rate lowers the accrued cost
local function correct(a, rate, from, to)
  local sign, last, micro, part = rate < 0 and -1 or 1, nil, 0, 0
  to = math.min(a[1], to)
  if rate == 0 or from >= to then return end
  for i = 1, #PERIODS do
    local p = PERIODS[i]
    local start = a[p]
    local ms = to - (from > start and from or start)
    if ms ~= last then -- most periods began earlier
      last, micro, part = ms, parts(sign * rate, ms)
    end
    local rest = a[p + 2] + sign * part
    local accrued = a[p + 1] + sign * micro + floor(rest / HOUR)
    if accrued < 0 then accrued, rest = 0, 0 end
    a[p + 1], a[p + 2] = accrued, rest % HOUR
  end
end

-- remembers for an hour that a hold has ended or that a resource is gone; longer for jobs, whose results the platform reports for
-- longer
local function forget(id)
  local at = now
  if string.sub(id, 1, 4) == 'job ' then at = now + JOBS end
  put(4, id, format('%.0f', at))
end

-- ends a hold
local function drop(name)
  forget(name)
  put(3, name, false)
end

-- records a change of a resource's rate that takes effect at a time, or a one-time cost
local function note(id, r, rate, at, once)
  if rate == 0 and once == 0 then return end
  changes[#changes + 1] = format(THREE, at, rate, once) .. '\n' .. r.kind .. '\n' .. id .. '\n' .. r.team .. '\n' .. r.key .. '\n' .. r.about
end

-- subtracts the reservation of a hold from the accounts
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
  note('', h, 0, now, micro)
end

local function same(a, b)
  for i = 1, AMOUNTS do
    if a[i] ~= b[i] then return false end
  end
  return true
end

-- adds a record to the accounts of its owner, effective from a time; with sign -1 subtracts it
local function enter(r, sign, at)
  for _, a in ipairs(accountsOf(r.team, r.key)) do
    add(a, COMMITTED, r.amounts, sign)
    if at < a[1] then correct(a, sign * r.amounts[1], at, a[1]) end
  end
end

-- replaces one record of a resource with another; either may be nil. from is the time of the rate change if that was earlier than now,
-- otherwise 0. The change does not take effect before the cost of old began.
local function replace(id, old, new, from)
  local at = math.max(from > 0 and math.min(now, from) or now, old and old.since or 0)
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
    new.version = ledger.seq + 1 -- the sequence number after count()
    new.changed = old and same(old.amounts, new.amounts) and old.changed or now
    saveResource(id, new)
  elseif old then
    put(2, id, false)
  end
end
