-- Writes a record and its entry in the index in one step.
-- KEYS: index, record. ARGV: id, value, ttl in ms (0: for ever), "always" or "new".
-- Returns 1 when written, 0 when "new" met an existing record.
if ARGV[4] == 'new' and redis.call('EXISTS', KEYS[2]) == 1 then
  return 0
end
if tonumber(ARGV[3]) > 0 then
  redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
else
  redis.call('SET', KEYS[2], ARGV[2])
end
redis.call('SADD', KEYS[1], ARGV[1])
return 1
