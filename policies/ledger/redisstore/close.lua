-- Closes the ledger if Redis has lost a part of it, or if the ledger has the given epoch.
--
-- ARGV  1  epoch and sequence known to the gateway, the given epoch
--
-- Returns {1 if the ledger is complete, else 0, head}.

open()
local lost = behind(given[1], given[2])
if ledger.epoch > 0 and ledger.epoch == given[3] then
  ledger.complete, ledger.token, lost = 0, SERVER, true
end
if lost then save() end
return head(ledger.complete)
