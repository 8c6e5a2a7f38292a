-- Raises the accrued costs to those that a gateway remembers.
--
-- ARGV  1  epoch and sequence as known   2  number of scopes, then for each: scope and account
--
-- Returns {1, head}.

local given = numbers(ARGV[1])
behind(given[1], given[2])
for i = 1, tonumber(ARGV[2]) do
  local a, other = account(ARGV[1 + 2 * i]), upToDate(numbers(ARGV[2 + 2 * i]))
  for k, p in ipairs(other.periods) do
    if p.start == a.periods[k].start and p.accrued > a.periods[k].accrued then a.periods[k] = p end
  end
end
save()
return head(1)
