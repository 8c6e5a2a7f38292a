-- Closes the ledger if the store has lost something of it, or if it is of an epoch.
--
-- ARGV  1  epoch and sequence seen, the epoch
--
-- Returns {1 if the ledger is complete and 0 if not, epoch, sequence, clock and writes}.

local given = numbers(ARGV[1])
local lost = behind(given[1], given[2])
if ledger.epoch > 0 and ledger.epoch == given[3] then
  ledger.complete, ledger.token, lost = 0, SERVER, true
end
if lost then saveLedger() end
return head(ledger.complete)
