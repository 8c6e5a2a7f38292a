-- Adds differences to the sums of scopes.
--
-- ARGV  1  epoch and sequence known to the gateway, number of earlier repairs   2  number of scopes, then for
--       each: scope, committed amounts and reserved amounts
--
-- Returns {1 if the sums were changed, else 0, head}.

open()
if behind(given[1], given[2]) then save() end
if ledger.repairs ~= given[3] then return head(0) end
for i = 1, tonumber(ARGV[2]) do
  local a, n = account(ARGV[1 + 2 * i]), numbers(ARGV[2 + 2 * i])
  add(a, COMMITTED, n, 1)
  add(a, RESERVED, amountsAt(n, AMOUNTS), 1)
end
ledger.repairs = ledger.repairs + 1
save()
return head(1)
