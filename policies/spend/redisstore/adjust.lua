-- Makes the record of a resource follow the platform.
--
-- ARGV  1  epoch and sequence seen, version of the record that the adjustment is
--          made for (0: there is none), gone (1 or 0), six amounts, owned (1 or 0)
--       2  kind   3  resource   4  about   5  team   6  key: the owner's, if owned
--
-- Returns {1 if it was made and 0 if not, epoch, sequence and clock}.

local given = numbers(ARGV[1])
local version, gone, amounts = given[3], given[4] == 1, amountsAt(given, 4)
local owned, res = given[5 + AMOUNTS] == 1, ARGV[3]

if behind(given[1], given[2]) then saveLedger() end
local old = resource(res)
if old and (old.version ~= version or old.pending > 0) or not old and (version ~= 0 or gone) then return head(0) end
if gone then
  replace(res, old, nil)
else
  local new = {since = now, pending = 0, amounts = amounts, kind = ARGV[2], team = '', key = '', about = ARGV[4]}
  if old then new.since, new.team, new.key, new.about = old.since, old.team, old.key, old.about end
  if owned then new.team, new.key = ARGV[5], ARGV[6] end
  replace(res, old, new)
end
saveAccounts()
saveLedger()
return head(1)
