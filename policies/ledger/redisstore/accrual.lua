-- Changes the costs that an owner has accrued in the current periods, or moves them between teams.
--
-- KEYS  6  string  the request of a change and its outcome; absent for a request without an ID. A request with an ID is applied once
--          hash    for a move: progress of the roll-ups; see post.lua
--
-- ARGV  1  epoch and sequence known to the gateway, kind (0 add, 1 reset, 2 move), period (1 day, 2 week, 3 month, 4 quarter,
--          5 total), micro-dollars to add, how long the request is remembered in ms
--       2  request   3  team   4  key   5  metadata; for a move:
--       1  epoch and sequence, kind, then for the day, the week, the month, the quarter and the total: how much the team has
--          accrued of the key's cost, in micro-dollars
--       2  version of the roll-ups   3  team to move from   4  key whose accrued costs are moved ('': all)   5  team to move to
--       6  all transfers, including this one (JSON)
--
-- Returns {status, head, outcome}. Status: 0 applied, 1 applied before, 2 another request has the ID or the roll-ups have
-- changed, 3 less has accrued than would be subtracted, 4 the ledger is incomplete. Outcome: the amounts added to day and
-- month, the accrued costs of both afterwards, the amounts added to week, quarter and total, and their accrued costs afterwards.

local MADE, REPEATED, CONFLICT, BELOW, CLOSED = 0, 1, 2, 3, 4
local RESET, MOVE = 1, 2

local kind, period, micro = given[3], given[4], given[5]

local function answer(status, outcome)
  local reply = head(status)
  reply[8] = outcome
  return reply
end

local function accrued(a)
  local out = {}
  for i, p in ipairs(PERIODS) do out[i] = a[p + 1] end
  return out
end

local NOTHING = {0, 0, 0, 0, 0}

local function outcomeOf(change, after)
  return format(TEN, change[1], change[3], after[1], after[3], change[2], change[4], change[5], after[2], after[4], after[5])
end

local function made(change, a)
  save()
  return answer(MADE, outcomeOf(change, accrued(a)))
end

local function adjust(team, key, about)
  local own = account(scopesOf(team, key)[1])
  local was, change = accrued(own), {0, 0, 0, 0, 0}
  if kind == RESET then micro = -was[period] end
  for i, p in ipairs(PERIODS) do
    if kind == RESET and i < period and own[p] >= own[PERIODS[period]] then
      change[i] = -was[i] -- a shorter period within the reset period is set to zero
    elseif kind == RESET or period == 2 and (i == 3 or i == 4) then -- the week may have begun before the month or quarter
      change[i] = math.max(micro, -was[i])
    elseif i >= period then
      change[i] = micro
    end
    if was[i] + change[i] < 0 then return answer(BELOW, outcomeOf(NOTHING, was)) end
  end
  local left = {unpack(change)} -- a wider scope loses at most what the narrower one lost: the rest was subtracted from it before
  for _, a in ipairs(accountsOf(team, key)) do
    for i, p in ipairs(PERIODS) do
      left[i] = math.max(left[i], -a[p + 1])
      a[p + 1] = a[p + 1] + left[i]
    end
  end
  note('', {kind = 'adjustment', team = team, key = key, about = about}, 0, now, left[period])
  if KEYS[6] then
    redis.call('SET', KEYS[6], ARGV[2] .. '\n' .. outcomeOf(change, accrued(own)), 'PX', string.format('%.0f', given[6]))
  end
  return made(change, own)
end

local function move(from, key, to)
  local scope, measured = 'team:' .. from, key == '' and 'team:' .. from or 'key:' .. key
  if (redis.call('HGET', KEYS[6], 'version') or '0') ~= ARGV[2] then return answer(CONFLICT, outcomeOf(NOTHING, NOTHING)) end
  if not get(1, scope) or not get(1, measured) then return answer(MADE, outcomeOf(NOTHING, NOTHING)) end
  local source, target, measure = account(scope), account('team:' .. to), account(measured)
  local change, rest = {}, 0
  for i, p in ipairs(PERIODS) do
    change[i] = math.min(source[p + 1], measure[p + 1], key == '' and source[p + 1] or given[3 + i])
    source[p + 1] = source[p + 1] - change[i]
    target[p + 1] = target[p + 1] + change[i]
    rest = rest + source[p + 1]
  end
  for i = 1, AMOUNTS do rest = rest + source[COMMITTED[i]] + source[RESERVED[i]] end
  if key == '' and rest == 0 then
    accounts[scope] = nil
    put(1, scope, false)
  end
  redis.call('HSET', KEYS[6], 'version', string.format('%.0f', tonumber(ARGV[2]) + 1), 'transfers', ARGV[6])
  return made(change, target)
end

open()
local earlier = kind ~= MOVE and KEYS[6] and redis.call('GET', KEYS[6])
if earlier then
  local request, outcome = string.match(earlier, '^(.-)\n(.*)$')
  return answer(request == ARGV[2] and REPEATED or CONFLICT, outcome)
end
if behind(given[1], given[2]) then save() end
if ledger.complete == 0 then return answer(CLOSED, outcomeOf(NOTHING, NOTHING)) end
if kind == MOVE then return move(ARGV[3], ARGV[4], ARGV[5]) end
return adjust(ARGV[3], ARGV[4], ARGV[5])
