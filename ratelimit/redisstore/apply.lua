-- Executes a list of operations on scopes, in order, as one atomic step.
--
-- KEYS     the scope keys, then other keys they need (the index of each organisation and its lease tables), then the table
--          of positions.
-- ARGV[1]  a JSON array of integers: the position known to the writer (epoch, -1 if none, and writes), 1 to announce a loss;
--          the number of scope keys; the key of the index for each of them; the number of debts, and for each debt: key,
--          debts, debtor, number, blind, generation, index and units (three times), three quotas; then the operations:
--            calls, n, then n times: key, three quotas, units taken by each call
--            0, n, divisor, leases, gateway, then n times:
--              key, three quotas, three needs, three wants, three held
--          Keys are indexes into KEYS. A quota of 0 means that the window is not limited. Leases and debts stand for two
--          keys, for even and odd days, so that each can expire with its day. Gateway and debtor are indexes into ARGV.
-- ARGV[2]  the writer.
--
-- A debt is charged even if it does not fit, and each unit of it once: the table of debts contains, for each scope and debtor, the
-- number, indexes and units of the debt charged last. Units of ended windows and of older generations are dropped. A blind debt comes
-- from a gateway that has never heard of the scope: it applies to the current generation and to no window later than the clock.
--
-- The table of positions contains the epoch, under '', and for each writer its number of writes and the day of the last one. If a
-- writer knows of more writes than the table, data was lost: the script then does nothing, and the epoch announced by the writer
-- informs the other gateways.
--
-- A scope is a JSON array: generation, then index and count of the minute, the hour and the day, then the three quotas of the latest
-- call (for operators). Value and expiry are written by one command, so there is no key without an expiry.
--
-- Returns numbers, separated by spaces or commas: the clock in milliseconds and the epoch, and nothing else if the writer's position
-- does not match; the number of its writes; for each operation the number of admitted calls, followed by three grants per scope for a
-- leasing operation (admitted or not); then generation, index and count (three times) of each scope key.
--
-- Everything to write is computed first, and the counts are written last: a failure, or a command refused by the server (ACL, memory),
-- charges nothing.

local UNLIMITED = 1e12
local SIZE = {60, 3600, 86400}
local RETENTION = 7200

-- %d takes half the time of %.0f and of tostring, but a 32-bit server formats only small numbers with it
local format = string.format
local wide = format('%d', 1e15) == '1000000000000000'
local function exact(text) return wide and text or (string.gsub(text, '%%d', '%%.0f')) end

local req = cjson.decode(ARGV[1])
local clock = redis.call('TIME')
local sec = tonumber(clock[1])
local now = sec * 1000 + math.floor(tonumber(clock[2]) / 1000)

local today = math.floor(sec / SIZE[3])
local positions, writer = KEYS[#KEYS], ARGV[2]
local has = redis.call('HMGET', positions, '', writer)
local epoch = tonumber(has[1] or '0')
local writes, written = string.match(has[2] or '0 0', '(%d+) (%d+)')
writes = tonumber(writes)
if req[1] >= 0 and (req[1] ~= epoch or req[2] > writes) then
  if req[3] == 1 and req[1] >= epoch then
    epoch = math.max(now, req[1] + 1)
    redis.call('HSET', positions, '', format('%.0f', epoch))
  end
  return format('%.0f %.0f', now, epoch)
end

local nk = req[4]
local state, index, dirty, writing = {}, {}, {}, false
local values = nk > 0 and redis.call('MGET', unpack(KEYS, 1, nk))
for k = 1, nk do
  local s = values[k] and cjson.decode(values[k]) or {0, 0, 0, 0, 0, 0, 0}
  -- add a scope that is new today to the index
  if s[6] < today then index[k] = req[k + 4] end
  for w = 1, 3 do
    local current = math.floor(sec / SIZE[w])
    -- keep a window later than the clock: a clock that steps back must not reopen a window
    if s[2 * w] < current then s[2 * w], s[2 * w + 1] = current, 0 end
  end
  state[k] = s
end

local p = nk + 6
local charged, latest = {}, {}
for _ = 1, req[p - 1] do
  local k, number, blind, generation = req[p], req[p + 3], req[p + 4], req[p + 5]
  local s, day = state[k], req[p + 10]
  local debts, field = KEYS[req[p + 1] + day % 2], KEYS[k] .. '|' .. ARGV[req[p + 2]]
  -- calls of one scope carry the same debt
  local last = latest[field]
  if not last then
    local v = redis.call('HGET', debts, field)
    last = v and cjson.decode(v) or {0, 0, 0, 0, 0, 0, 0}
  end
  if number >= last[1] then
    if number > last[1] then last = {number, 0, 0, 0, 0, 0, 0} end
    if blind == 1 then generation = s[1] end
    if generation >= s[1] then
      s[1] = generation
      for w = 1, 3 do
        local at, units = req[p + 4 + 2 * w], req[p + 5 + 2 * w]
        local i, c = 2 * w, 2 * w + 1
        if at > last[i] then last[i], last[c] = at, 0 end
        if at == last[i] and units > last[c] then
          local due = units - last[c]
          last[c] = units
          if blind == 1 then at = math.min(at, s[i]) end
          if at > s[i] then s[i], s[c] = at, 0 end
          if at == s[i] then s[c] = s[c] + due end
        end
      end
      for w = 8, 10 do s[w] = s[w] or req[p + 4 + w] end
      dirty[k], index[k] = true, req[k + 4]
    end
    latest[field], writing = last, true
    charged[#charged + 1] = {debts, field, '[' .. table.concat(last, ',') .. ']', day}
  end
  p = p + 15
end

local out, leases = {''}, {}
while req[p] do
  local calls, n = req[p], req[p + 1]
  if calls > 0 then
    p = p + 2
    local fit = calls
    for i = 0, n - 1 do
      local s = state[req[p + 5 * i]]
      for w = 1, 3 do
        local q = req[p + 5 * i + w]
        if q == 0 then q = UNLIMITED end
        fit = math.min(fit, math.floor((q - s[2 * w + 1]) / req[p + 5 * i + 4]))
      end
    end
    if fit < 0 then fit = 0 end
    if fit > 0 then
      for i = 0, n - 1 do
        local k = req[p + 5 * i]
        local s = state[k]
        for w = 1, 3 do
          s[2 * w + 1] = s[2 * w + 1] + fit * req[p + 5 * i + 4]
          s[w + 7] = req[p + 5 * i + w]
        end
        dirty[k], writing = true, true
      end
    end
    out[#out + 1] = fit
    p = p + 5 * n
  else
    local divisor, tables, gateway = req[p + 2], req[p + 3], ARGV[req[p + 4]]
    p = p + 5
    local fits = true
    for i = 0, n - 1 do
      local s = state[req[p + 13 * i]]
      for w = 1, 3 do
        local q, need = req[p + 13 * i + w], req[p + 13 * i + 3 + w]
        if q == 0 then q = UNLIMITED end
        if need > 0 and s[2 * w + 1] + need > q then fits = false end
      end
    end
    out[#out + 1] = fits and 1 or 0
    for i = 0, n - 1 do
      local k = req[p + 13 * i]
      local s = state[k]
      local lease = {}
      for w = 1, 3 do
        local o = p + 13 * i + w
        local q, need, want, held = req[o], req[o + 3], req[o + 6], req[o + 9]
        local grant = 0
        if fits then
          s[w + 7] = q
          if q == 0 then q = UNLIMITED end
          s[2 * w + 1] = s[2 * w + 1] + need
          -- the total held by the gateway is limited to a part of what is left, including its own permits
          grant = math.max(0, math.min(want, math.floor((q - s[2 * w + 1] + held) / divisor) - held))
          s[2 * w + 1] = s[2 * w + 1] + grant
        end
        out[#out + 1] = grant
        lease[2 * w - 1], lease[2 * w] = s[2 * w], held + grant
      end
      if fits then
        dirty[k], writing = true, true
        leases[#leases + 1] = {KEYS[tables + s[6] % 2], KEYS[k] .. '|' .. gateway, '[' .. table.concat(lease, ',') .. ']', s[6]}
      end
    end
    p = p + 13 * n
  end
end

local function expiry(day) return (day + 1) * SIZE[3] + RETENTION end
if writing then
  writes = writes + 1
  if tonumber(written) ~= today then -- drop writers that have not written for a day
    local all = redis.call('HGETALL', positions)
    for i = 1, #all, 2 do
      local last = tonumber(string.match(all[i + 1], ' (%d+)'))
      if last and last < today - 1 then redis.call('HDEL', positions, all[i]) end
    end
  end
  redis.call('HSET', positions, writer, format('%.0f %.0f', writes, today))
  if tonumber(written) ~= today then redis.call('EXPIREAT', positions, expiry(today + 1)) end
end
for _, c in ipairs(charged) do
  redis.call('HSET', c[1], c[2], c[3])
  redis.call('EXPIREAT', c[1], expiry(c[4]))
end
for _, l in ipairs(leases) do
  redis.call('HSET', l[1], l[2], l[3])
  redis.call('EXPIREAT', l[1], expiry(l[4]))
end
for k = 1, nk do
  if dirty[k] and index[k] then
    redis.call('SADD', KEYS[index[k]], KEYS[k])
    redis.call('EXPIREAT', KEYS[index[k]], expiry(state[k][6]))
  end
end
local STATE, SCOPE = exact('%d,%d,%d,%d,%d,%d,%d'), exact('[%s,%d,%d,%d]')
for k = 1, nk do
  local s = state[k]
  local counts = format(STATE, unpack(s, 1, 7))
  out[#out + 1] = counts
  if dirty[k] then redis.call('SET', KEYS[k], format(SCOPE, counts, s[8], s[9], s[10]), 'EXAT', expiry(s[6])) end
end
out[1] = format(exact('%d %d %d'), now, epoch, writes)
return table.concat(out, ' ')
