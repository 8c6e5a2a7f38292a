-- Changes records of resources to match the platform.
--
-- KEYS  6  and following, one per adjustment: the owner of a removed resource
--
-- ARGV  1  epoch and sequence known to the gateway, number of adjustments, retention of owners in ms,
--          then for each adjustment: version of the record that it applies to (0: no record), gone (1 or 0), amounts,
--          owned (1 or 0), time of the rate change (0: now); kind; resource ID; metadata; team and key of the owner, if owned
--
-- Returns {0, head, result of each adjustment}: 1 if it was made, 2 if it was made and returned the resource to an earlier
-- owner, 0 if it was skipped.

local LIVE = -1 -- a version that matches any version of a sandbox that has not ended
local keep = string.format('%.0f', given[4])

local function adjust(kept, at)
  local a = numbers(ARGV[at])
  local version, gone, owned, from, res = a[1], a[2] == 1, a[3 + AMOUNTS] == 1, a[4 + AMOUNTS], ARGV[at + 2]
  local old, made = resource(res), 1
  if old and version == LIVE and old.amounts[SANDBOXES] > 0 then version = old.version end
  if old and (old.version ~= version or old.pending > 0) or not old and (version ~= 0 or gone) then return 0 end
  if not old and ended('gone:' .. res) then return 0 end -- the platform's list is older than the removal
  if gone then
    if old.team .. old.key ~= '' then
      redis.call('SET', kept, table.concat({old.team, old.key, old.about}, '\n'), 'PX', keep)
    end
    replace(res, old, nil, from)
    return made
  end
  local new = {since = now, pending = 0, amounts = amountsAt(a, 2), kind = ARGV[at + 1], team = '', key = '', about = ARGV[at + 3]}
  local before = old and {old.team, old.key, old.about}
  if not old then
    local text = redis.call('GET', kept)
    if text then
      before, made = {string.match(text, '^(.-)\n(.-)\n(.*)$')}, 2
      redis.call('DEL', kept)
    end
  else
    new.since = old.since
  end
  if before then new.team, new.key, new.about = before[1], before[2], before[3] end
  if owned then
    new.team, new.key = ARGV[at + 4], ARGV[at + 5]
    if ARGV[at + 3] ~= '{}' then new.about = ARGV[at + 3] end
  end
  replace(res, old, new, from)
  return made
end

want(1, 'org')
for i = 1, given[3] do
  local id = ARGV[4 + 6 * (i - 1)]
  want(2, id)
  want(4, 'gone:' .. id)
end
open()
if behind(given[1], given[2]) then save() end
local made, any = {}, false
for i = 1, given[3] do
  made[i] = adjust(KEYS[5 + i], 2 + 6 * (i - 1))
  any = any or made[i] > 0
end
if any then save() end
local reply = head(0)
for i = 1, #made do reply[7 + i] = made[i] end
return reply
