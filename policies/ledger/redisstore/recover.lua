-- Begins an epoch if Redis has lost intents, and completes it when all gateways have restored theirs.
--
-- KEYS  1, 2  intents
-- ARGV  1, 2  see openIntents   3  how long to wait for gateways, in ms   4 and following: names of gateways
--
-- Returns {1 if the intents are complete, else 0; [epoch, writes, now]}.

openIntents(1, 1, {})
local function head() redis.call('HSET', intents.key, '', format(THREE, intents.epoch, intents.complete, intents.began)) end
if intents.epoch == 0 or intents.older then
  local given = cjson.decode(ARGV[2])
  intents.epoch, intents.complete, intents.began = math.max(now, intents.epoch + 1, given[1] + 1), 0, now
  intents.writes = 0
  head()
end
if intents.complete == 0 then
  local missing = false
  for i = 4, #ARGV do
    if redis.call('HGET', intents.key, 's' .. ARGV[i]) ~= format('%.0f', intents.epoch) then missing = true end
  end
  if not missing or now - intents.began >= tonumber(ARGV[3]) then
    intents.complete = 1
    head()
  end
end
return {intents.complete, format(THREE, intents.epoch, intents.writes, now)}
