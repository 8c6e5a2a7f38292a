-- Raises what has accrued to what a gateway remembers of it.
--
-- ARGV  1  epoch and sequence seen   2  how many scopes, then for each: scope and account
--
-- Returns {1, epoch, sequence, clock and writes}.

local given = numbers(ARGV[1])
behind(given[1], given[2])
for i = 1, tonumber(ARGV[2]) do
  local a, other = account(ARGV[1 + 2 * i]), upToDate(numbers(ARGV[2 + 2 * i]))
  for k, p in ipairs(other.periods) do
    if p.start == a.periods[k].start and p.accrued > a.periods[k].accrued then a.periods[k] = p end
  end
end
saveAccounts()
saveLedger()
return head(1)
