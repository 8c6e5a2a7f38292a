-- Begins or finishes a rebuild.
--
-- ARGV  1  epoch and sequence known to the gateway, finish (1 or 0)   2  token of the rebuild
--
-- Returns {1 if the ledger is complete, else 0, head}.

local function mark()
  local epoch = format('%.0f', ledger.epoch)
  put(2, '', epoch)
  put(3, '', epoch)
  put(4, '', format('%.0f', MARK + ledger.epoch))
end

open()
behind(given[1], given[2])
if given[3] == 0 then
  -- later than every epoch that a gateway can know
  ledger.epoch, ledger.token = math.max(now, ledger.epoch + 1, given[1] + 1), ARGV[2]
  ledger.repairs, ledger.writes = ledger.epoch, 0
  mark()
elseif ledger.token == ARGV[2] and marked() then
  ledger.complete = 1
end
save()
return head(ledger.complete)
