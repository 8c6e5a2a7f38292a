-- Closes the ledger if Redis has lost a part of it, or if the ledger is of a given epoch.
--
-- ARGV  1  epoch and sequence as known, the given epoch
--
-- Returns {1 if the ledger is complete, else 0, head}.

open()
local lost = behind(given[1], given[2])
if ledger.epoch > 0 and ledger.epoch == given[3] then
  ledger.complete, ledger.token, lost = 0, SERVER, true
end
if lost then save() end
return head(ledger.complete)
