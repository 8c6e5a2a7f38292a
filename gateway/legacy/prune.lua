-- Takes ids off the index whose records are gone. Each is looked at again here,
-- so one that was written in between stays.
-- KEYS: index, record 1, record 2, ... ARGV: id 1, id 2, ...
for i, id in ipairs(ARGV) do
  if redis.call('EXISTS', KEYS[i + 1]) == 0 then
    redis.call('ZREM', KEYS[1], id)
  end
end
return 0
