-- Raises accrued costs to the amounts that a gateway remembers.
--
-- ARGV  1  epoch and sequence known to the gateway   2  number of scopes, then for each: scope and account
--
-- Returns {1, head}.

open()
behind(given[1], given[2])
for i = 1, tonumber(ARGV[2]) do
  local a, other = account(ARGV[1 + 2 * i]), upToDate(numbers(ARGV[2 + 2 * i]))
  for _, p in ipairs(PERIODS) do
    if other[p] == a[p] and other[p + 1] > a[p + 1] then a[p + 1], a[p + 2] = other[p + 1], other[p + 2] end
  end
end
save()
return head(1)
