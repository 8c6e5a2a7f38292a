-- Executes reservations and settlements of an organisation, in order, as one atomic step.
--
-- KEYS  6, 7  intents   8 and following: owners of jobs
--
-- ARGV  1     JSON array: epoch and sequence known to the gateway, number of calls, then for each call: settles (1 or 0),
--             has an intent (1 or 0), index in KEYS of a job's owner (0: none), number of numbers, and the numbers
--       2, 3  see openIntents
--       then the texts of each call; see reserve.lua and settle.lua
--
-- Returns {0, head, then an array for each call}.

local calls, fields = {}, {}
local n, t = 3, 4
for i = 1, given[3] do
  local settles, intent = given[n + 1] == 1, given[n + 2] == 1
  calls[i] = {settles, intent, given[n + 3], n + 4, t}
  local res = ARGV[t + 2]
  local scopes = scopesOf(ARGV[t + 3], ARGV[t + 4])
  for s = 1, #scopes do want(1, scopes[s]) end
  want(2, res)
  want(3, ARGV[t])
  want(4, ARGV[t])
  n, t = n + 4 + given[n + 4], t + 7
  if settles then
    want(3, ARGV[t - 1])
    if res ~= '' then want(4, 'gone:' .. res) end
  end
  if intent then
    for f = t, t + (settles and 3 or 2) do fields[#fields + 1] = ARGV[f] end
    t = t + (settles and 9 or 7)
  end
end
open()
if #fields > 0 then openIntents(6, 2, fields) end

local before, replies = ledger.seq, {}
if behind(given[1], given[2]) then count() end
local settle, reserve -- each is created when a call needs it
for i = 1, #calls do
  local c = calls[i]
  if c[1] then
    settle = settle or settling()
    replies[i] = settle(c[5], c[4], c[2], c[3])
  else
    reserve = reserve or reserving()
    replies[i] = reserve(c[5], c[4], c[2])
  end
end
if next(intents.changed) then saveIntents() end
if ledger.seq > before then flush() end
local reply = head(0)
for i = 1, #replies do reply[7 + i] = replies[i] end
return reply
