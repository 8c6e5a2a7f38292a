-- Changes the costs that an owner has accrued in the day and the month, or moves them between teams, once for each request.
--
-- KEYS  6  string  the request and its outcome; not given for a request without an id
--
-- ARGV  1  epoch and sequence as known, kind (0 add, 1 reset, 2 move), period (1 day, 2 month), micro-dollars to be added, how
--          long the request is remembered in ms (0: for good)
--       2  the request   3  team   4  key   5  about; of a move:
--       3  team from     4  key, whose accrued costs are moved, '' for everything   5  team to
--
-- Returns {status, head, outcome}: 0 made, 1 made before, 2 another request has the id, 3 less
-- has accrued than would be subtracted, 4 the ledger is not complete. The outcome is what was added to day and month, and
-- the accrued costs of both afterwards.

local MADE, REPEATED, CONFLICT, BELOW, CLOSED = 0, 1, 2, 3, 4
local RESET, MOVE = 1, 2

local given = numbers(ARGV[1])
local kind, period, micro = given[3], given[4], given[5]

local function answer(status, outcome)
  local reply = head(status)
  reply[3] = outcome
  return reply
end

local function accrued(a) return {a.periods[1].accrued, a.periods[2].accrued} end

-- saves what was changed and remembers the request
local function made(change, a)
  local after = accrued(a)
  local outcome = line({change[1], change[2], after[1], after[2]})
  if KEYS[6] and given[6] > 0 then
    redis.call('SET', KEYS[6], ARGV[2] .. '\n' .. outcome, 'PX', string.format('%.0f', given[6]))
  elseif KEYS[6] then
    redis.call('SET', KEYS[6], ARGV[2] .. '\n' .. outcome)
  end
  save()
  return answer(MADE, outcome)
end

local function adjust(team, key, about)
  local own = account(scopesOf(team, key)[1])
  local was, change = accrued(own), {period == 1 and micro or 0, micro}
  if kind == RESET then
    change = {-was[1], period == 1 and math.max(-was[1], -was[2]) or -was[2]}
  end
  if was[1] + change[1] < 0 or was[2] + change[2] < 0 then return answer(BELOW, line({0, 0, was[1], was[2]})) end
  each(team, key, function(a)
    for i, p in ipairs(a.periods) do p.accrued = math.max(0, p.accrued + change[i]) end
  end)
  note('', {kind = 'adjustment', team = team, key = key, about = about}, 0, account('org').at, change[2])
  return made(change, own)
end

local function move(from, key, to)
  local scope, measured = 'team:' .. from, key == '' and 'team:' .. from or 'key:' .. key
  load({scope, measured})
  if not stored[scope] or not stored[measured] then
    return answer(MADE, line({0, 0, 0, 0}))
  end
  local source, target, measure = account(scope), account('team:' .. to), account(measured)
  local change, rest = {}, 0
  for i, p in ipairs(source.periods) do
    change[i] = math.min(p.accrued, measure.periods[i].accrued)
    p.accrued = p.accrued - change[i]
    target.periods[i].accrued = target.periods[i].accrued + change[i]
    rest = rest + p.accrued
  end
  for i = 1, AMOUNTS do rest = rest + source.committed[i] + source.reserved[i] end
  if key == '' and rest == 0 then
    accounts[scope] = nil
    redis.call('HDEL', KEYS[1], scope)
  end
  return made(change, target)
end

local earlier = KEYS[6] and redis.call('GET', KEYS[6])
if earlier then
  local request, outcome = string.match(earlier, '^(.-)\n(.*)$')
  return answer(request == ARGV[2] and REPEATED or CONFLICT, outcome)
end
if behind(given[1], given[2]) then save() end
if ledger.complete == 0 then return answer(CLOSED, line({0, 0, 0, 0})) end
if kind == MOVE then return move(ARGV[3], ARGV[4], ARGV[5]) end
return adjust(ARGV[3], ARGV[4], ARGV[5])
