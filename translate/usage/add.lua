-- Adds one batch to the rows of an organisation, whose keys are all in one slot.
-- KEYS: index of rows, programs, last batch number of the source; then for each row
-- its hash, and the hash to use instead if there are too many programs.
-- ARGV: batch number, ttl in ms, time in ms before which rows are dropped, maximum
-- number of programs, ttl of the batch number in ms; then for each row its id, the id
-- to use instead if there are too many programs, its program, first and last in ms,
-- the number of counters, and each counter as name and increment.
-- Returns 1 if the batch was added, 0 if it had been added before.
local seen = redis.call('GET', KEYS[3])
if seen and tonumber(seen) >= tonumber(ARGV[1]) then
  return 0
end
redis.call('SET', KEYS[3], ARGV[1], 'PX', ARGV[5])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[3])

local k, a = 4, 6
while a <= #ARGV do
  local key, id, agent = KEYS[k], ARGV[a], ARGV[a + 2]
  local first, last, counters = ARGV[a + 3], ARGV[a + 4], tonumber(ARGV[a + 5])
  if not redis.call('ZSCORE', KEYS[2], agent) and redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[4]) then
    key, id = KEYS[k + 1], ARGV[a + 1]
  else
    redis.call('ZADD', KEYS[2], last, agent)
  end
  local known = redis.call('HMGET', key, 'first', 'last')
  if not known[1] or tonumber(known[1]) > tonumber(first) then
    redis.call('HSET', key, 'first', first)
  end
  if not known[2] or tonumber(known[2]) < tonumber(last) then
    redis.call('HSET', key, 'last', last)
    redis.call('ZADD', KEYS[1], last, id)
  end
  for i = 1, counters do
    redis.call('HINCRBY', key, ARGV[a + 4 + 2 * i], ARGV[a + 5 + 2 * i])
  end
  redis.call('PEXPIRE', key, ARGV[2])
  k, a = k + 2, a + 6 + 2 * counters
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1
