-- Ends a hold, or opens it.
--
-- KEYS  6, 7  optional: the intents, for the end of the hold's intent
--       then, optional: the owner of a job, as team and key
--
-- ARGV  1  epoch and sequence as known, end (0 release, 1 open, 2 commit), how long an
--          open hold waits in ms, gone (1 or 0), full (1 or 0), six amounts of the
--          resource
--       2  hold ID   3  kind   4  resource ID ('': a one-time cost accrues)
--       5  team   6  key   7  metadata   8  new ID of an open hold ('': unchanged); ends with a commit
--       9 and on: two of openIntents, and the arguments of finish
--
-- Returns {0, head}.

local RELEASE, OPEN, COMMIT = 0, 1, 2

local given = numbers(ARGV[1])
local how, wait, gone, full, amounts = given[3], given[4], given[5] == 1, given[6] == 1, amountsAt(given, 6)
local id, res, as = ARGV[2], ARGV[4], ARGV[8]

if #KEYS >= 7 then
  openIntents(6, 9, {ARGV[11], ARGV[12], ARGV[13], ARGV[14]})
  if intents.known then finish(11) end -- otherwise the gateway restores the intent with its end
end

-- writes what was computed, and replies
local function done(changed)
  if intents.known then saveIntents() end
  if changed then save() end
  return head(0)
end

local holds = {id, as ~= '' and as or nil}
open(scopesOf(ARGV[5], ARGV[6]), res ~= '' and {res} or {}, holds, {id, res ~= '' and 'gone:' .. res or nil})
local lost = behind(given[1], given[2])
local held = holdOf(id)
if not held and (how == OPEN or ended(id)) then return done(lost) end

local function drop(name)
  forget(name)
  put(3, name, false)
end

-- the largest one-time cost of a hold's call
local function most(h)
  local ok, about = pcall(cjson.decode, h.about)
  local n = ok and type(about) == 'table' and tonumber(about.most) or 0
  return math.max(h.amounts[COST], n)
end

if how == OPEN then
  held.open, held.wait = 1, now + wait
  if as ~= '' and as ~= id then
    local other = holdOf(as)
    if other then
      drop(as)
      unreserve(other)
      spend(other, most(other))
    end
    drop(id)
    id = as
  end
  saveHold(id, held)
  return done(true)
end

drop(id)
if as ~= '' then forget(as) end
if held then unreserve(held) end

if how == COMMIT and res == '' then
  local h = held
  if not h and ledger.epoch > now - DAY then -- a loss of Redis has lost the hold
    h = {amounts = amounts, kind = ARGV[3], team = ARGV[5], key = ARGV[6], about = ARGV[7]}
    if #KEYS == 6 or #KEYS == 8 then
      local owner = redis.call('GET', KEYS[#KEYS])
      if owner then h.team, h.key = string.match(owner, '^(.-)\n(.*)$') else h = nil end
    end
  end
  if h then spend(h, full and most(h) or amounts[COST]) end
elseif how == COMMIT then
  local old = resource(res)
  local new = {since = now, pending = 0, amounts = amounts, kind = ARGV[3], team = ARGV[5], key = ARGV[6], about = ARGV[7]}
  -- alone: no other change of the resource overlapped. After overlapping changes the
  -- order is unknown, and nothing is lowered.
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
    new = nil
    alone = alone or not held and old ~= nil and old.pending == 0
    forget('gone:' .. res)
  elseif old and not alone then
    for i = 1, AMOUNTS do new.amounts[i] = math.max(new.amounts[i], old.amounts[i]) end
  elseif not old and ended('gone:' .. res) then
    new = nil -- it was removed before this commit arrived
  end
  if new or old and alone then
    replace(res, old, new)
    if held and new then
      local before = old and old.team == new.team and old.key == new.key and old.amounts[1] or 0
      local more = math.max(0, new.amounts[1] - before)
      for _, a in ipairs(accountsOf(new.team, new.key)) do correct(a, more, held.at, a[1]) end
      note(res, new, more, held.at, 0)
      note(res, new, -more, account('org')[1], 0)
    end
  end
end
return done(true)
