-- Ends a hold, or opens it. Its texts are in ARGV from index t, its numbers follow index n of the first argument, and the owner of a
-- job is in KEYS, as team and key, at the given index (0 for none).
--
-- The release of a hold that has taken over open holds leaves an open hold, whose ID ends in '-open'.
--
-- texts    hold ID, kind, resource ID ('': a one-time cost accrues), team, key, metadata, new ID of an open hold ('': unchanged),
--          which ends with a commit; then, with an intent: the arguments of finish
-- numbers  end (0 release, 1 open, 2 commit), time in ms after which an open hold is released, gone (1 or 0), full (1 or 0),
--          amounts of the resource, when the cost of a new resource began or the cost of another one changed (0: time of the
--          hold, or now)
--
-- Returns {0}.

local RELEASE, OPEN, COMMIT = 0, 1, 2

-- returns the maximum one-time cost of a hold's call
local function most(h)
  local ok, about = pcall(cjson.decode, h.about)
  local n = ok and type(about) == 'table' and tonumber(about.most) or 0
  return math.max(h.amounts[COST], n)
end

-- opens a hold, under a new ID unless that is ''
local function opened(id, held, wait, as)
  held.wait = math.max(now + wait, held.open == 0 and held.wait or 0)
  held.open = 1
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
end

-- accrues a one-time cost; if its hold was lost, h is created from the call
local function once(h, lost, amounts, full, job)
  if lost then
    if ledger.epoch <= now - DAY then return end -- only a rebuild within the last day can have lost the hold
    if job > 0 then
      local owner = redis.call('GET', KEYS[job])
      if not owner then return end
      h.team, h.key = string.match(owner, '^(.-)\n(.*)$')
    end
  end
  spend(h, full and most(h) or amounts[COST])
end

-- commits a resource as described by the call of a hold, or by a call whose hold is unknown
local function commit(res, new, held, gone, from)
  local old = resource(res)
  -- alone: no other change of the resource overlapped. After overlapping changes the order is unknown, and no amount is lowered.
  local alone = held ~= nil
  if held then new.kind, new.team, new.key, new.about = held.kind, held.team, held.key, held.about end
  if old then
    new.pending, new.since = old.pending, old.since
    if not held or held.resource ~= '' then
      new.team, new.key, new.about = old.team, old.key, old.about
      alone = held ~= nil and old.version == held.base and old.pending == 0
    end
  end
  if gone and old and old.kind ~= new.kind then return end -- the ID belongs to a resource of another kind
  if gone then
    new = nil -- later commits of overlapping calls do not add the resource again
    forget('gone:' .. res)
  elseif old and not alone then
    for i = 1, AMOUNTS do new.amounts[i] = math.max(new.amounts[i], old.amounts[i]) end
  elseif not old and ended('gone:' .. res) then
    new = nil -- removed before this commit arrived
  end
  if not new and not old then return end
  replace(res, old, new, from)
  if not held or not new or from > 0 then return end
  local before = old and old.team == new.team and old.key == new.key and old.amounts[1] or 0
  local more = math.max(0, new.amounts[1] - before)
  for _, a in ipairs(accountsOf(new.team, new.key)) do correct(a, more, held.at, now) end
  note(res, new, more, held.at, 0)
  note(res, new, -more, now, 0)
end

return function(t, n, intent, job)
  if intent and intents.known then finish(t + 7) end -- otherwise the gateway restores the intent together with its end
  local how, wait, gone, full, amounts = given[n + 1], given[n + 2], given[n + 3] == 1, given[n + 4] == 1, amountsAt(given, n + 4)
  local id, res, as = ARGV[t], ARGV[t + 2], ARGV[t + 6]
  local held = holdOf(id)
  if not held and (how == OPEN or ended(id)) then return {0} end
  if how == RELEASE and held and held.open == 0 and held.wait > 0 then how, as = OPEN, id .. '-open' end
  if how == OPEN then
    opened(id, held, wait, as)
  else
    drop(id)
    if as ~= '' then forget(as) end
    if held then unreserve(held) end
    local called = {since = now, pending = 0, amounts = amounts, kind = ARGV[t + 1], team = ARGV[t + 3], key = ARGV[t + 4], about = ARGV[t + 5]}
    if how == COMMIT and res == '' then
      once(held or called, not held, amounts, full, job)
    elseif how == COMMIT then
      commit(res, called, held, gone, given[n + 5 + AMOUNTS])
    end
  end
  count()
  return {0}
end
