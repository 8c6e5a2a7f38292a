-- Restores the holds that a gateway remembers into a ledger that Redis has lost.
--
-- ARGV  1  epoch and sequence known to the gateway, epoch of the rebuild, number of ended holds, number of holds
--       2 and following: the IDs of holds that have ended
--       then for each hold: [time, open (1 or 0), until, accrued (1 or 0), amounts], ID, kind,
--       resource ID, team, key, metadata, holder; accrued is 1 if the balances offered by the gateway
--       include the cost accrued for the hold
--
-- Returns {0, or -2 if the ledger has another epoch, head, then for each hold: 1 if it was restored, else 0}.

local OTHER = -2

open()
if behind(given[1], given[2]) then save() end
if ledger.epoch ~= given[3] then return head(OTHER) end

local at, restored = 2, {}
for _ = 1, given[4] do
  local id = ARGV[at]
  local held = holdOf(id)
  if held then
    put(3, id, false)
    unreserve(held)
  end
  forget(id)
  at = at + 1
end
for _ = 1, given[5] do
  local n, id = numbers(ARGV[at]), ARGV[at + 1]
  local h = {
    at = n[1], open = n[2], wait = n[3], base = 0, amounts = amountsAt(n, 4), kind = ARGV[at + 2], resource = ARGV[at + 3],
    team = ARGV[at + 4], key = ARGV[at + 5], about = ARGV[at + 6], holder = ARGV[at + 7],
  }
  local held = holdOf(id)
  restored[#restored + 1] = 0
  if held then
    if h.open == 1 and held.open == 0 then
      held.open, held.wait = 1, h.wait
      saveHold(id, held)
    end
  elseif not ended(id) then
    for _, a in ipairs(accountsOf(h.team, h.key)) do
      add(a, RESERVED, h.amounts, 1)
      if n[4] == 0 then correct(a, h.amounts[1], h.at, a[1]) end
    end
    saveHold(id, h)
    restored[#restored] = 1
  end
  at = at + 8
end
save()
local reply = head(0)
for i = 1, #restored do reply[7 + i] = restored[i] end
return reply
