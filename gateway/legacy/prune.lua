-- Removes ids of missing records from the index. It checks each record again, so
-- that a record written in the meantime keeps its entry.
-- KEYS: index, record 1, record 2, ... ARGV: id 1, id 2, ...
for i, id in ipairs(ARGV) do
  if redis.call('EXISTS', KEYS[i + 1]) == 0 then
    redis.call('ZREM', KEYS[1], id)
  end
end
return 0
