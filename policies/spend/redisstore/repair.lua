-- Adds to sums what they are found to lack.
--
-- ARGV  1  epoch and sequence seen, repairs made before   2  how many scopes, then for
--       each: scope, six amounts committed and six reserved
--
-- Returns {1 if it was done and 0 if not, epoch, sequence, clock and writes}.

local given = numbers(ARGV[1])
if behind(given[1], given[2]) then saveLedger() end
if ledger.repairs ~= given[3] then return head(0) end
for i = 1, tonumber(ARGV[2]) do
  local a, n = account(ARGV[1 + 2 * i]), numbers(ARGV[2 + 2 * i])
  add(a.committed, n, 1)
  add(a.reserved, amountsAt(n, AMOUNTS), 1)
end
ledger.repairs = ledger.repairs + 1
saveAccounts()
saveLedger()
return head(1)
