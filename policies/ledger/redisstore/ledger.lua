-- Constants and state of all scripts of the ledger.
--
-- KEYS  all of one organisation, in one slot:
--   1  hash   '' -> head of the ledger; '@' and the name of a gateway's store -> its writes; scope -> account
--   2  hash   resource ID -> record
--   3  hash   hold ID -> hold
--   4  zset   IDs of ended holds, and 'gone:' with the IDs of removed resources, by time in ms
--   5  list   changes of rates since the last roll-up; see post.lua
--
-- ARGV  last: a JSON array with the starts and the end of the three days around now, then the same for two weeks, two
--       months and two quarters, then 0 and FOREVER, as computed by package ledger
--       the two before it: name of the gateway's store, and its number of writes as known to the gateway
--
-- The epoch of the ledger is stored under '' in each of the first four keys (in the fourth key with MARK added), so that a script
-- detects the loss of a single key.
--
-- A record consists of a line with a JSON array of integers, followed by lines of text:
--   head      epoch, sequence, complete (1 or 0), repairs / token of a running rebuild, or the reason
--             for which the ledger was closed: OLDER or SERVER
--   writes    epoch, number of writes in the epoch, time of the last write
--   account   time, six committed amounts, six reserved amounts, then for the day, the month, the week, the quarter and
--             the total: start, accrued, carry, then the other committed and reserved amounts if any of them is not 0. Records
--             of earlier versions end with the month
--   resource  version, since, pending, six amounts, changed, the other amounts if any is not 0 / kind / team / key / metadata (JSON)
--   hold      time, open (1 or 0), until (also set if open holds were taken over), version of the resource, six amounts, the other amounts
--             if any is not 0 / kind / resource / team / key / metadata (JSON) / holder ('' if unknown)
--   change    time, increase of the rate in micro-dollars per hour, one-time cost in micro-dollars / kind / resource
--             ('' for one-time costs) / team / key / metadata (JSON)
--
-- Amounts are micro-dollars per hour, counts, and micro-dollars, in the order of package ledger. Times are Unix milliseconds. All
-- numbers and products are integers below 2^53; see parts.

local HOUR, DAY = 3600000, 86400000
local MAXBURN = 1e12
local AMOUNTS, FIRST, COST, SANDBOXES, BOUNDED = 8, 6, 6, 7, 8 -- FIRST: number of amounts known to earlier versions
local ENDED, JOBS, MAXENDED = HOUR, 23 * HOUR, 250000 -- retention of ended holds, additional retention for jobs, and largest number of ended holds
local MARK, OLDER, SERVER = 1e15, 'older', 'server'

local numbers = cjson.decode
local given = numbers(ARGV[1])

-- Formats of records, because cjson.encode writes only 14 digits of a number. An account is SHORT if all of its other amounts are 0.
local HEAD = exact('[%d,%d,%d,%d]')
local TEN = exact('[%d,%d,%d,%d,%d,%d,%d,%d,%d,%d]')
local TWELVE = exact('[%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d]')
local SHORT = exact('[%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d]')
local LONG = exact('[%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d]')

-- Indexes in an account: the committed and reserved amounts, and the starts of the day, the week, the month, the quarter and the total.
-- Each start is followed by the accrued cost and the carry.
local COMMITTED, RESERVED = {2, 3, 4, 5, 6, 7, 29, 30}, {8, 9, 10, 11, 12, 13, 31, 32}
local PERIODS = {14, 20, 17, 23, 26}

local STALE = -1
local calendar = numbers(ARGV[#ARGV])
if now < calendar[1] or now >= calendar[4] then return {STALE, 0, 0, now, 0, 0, 0} end
local FOREVER = calendar[15]

-- starts and ends of the periods that contain a time; see bounds
local found, starts, stops

-- The fields read from the first four keys, and the fields that have changed. Nothing is written before write().
local stored, changed = {{}, {}, {}, {}}, {{}, {}, {}, {}}
local READS = {'HMGET', 'HMGET', 'HMGET', 'ZMSCORE'}
local own, written = '@' .. ARGV[#ARGV - 2], tonumber(ARGV[#ARGV - 1])
local wanted = {{'', own}, {''}, {''}, {''}} -- fields that open reads

-- the latest owner whose scopes were requested: team, key, scopes, and the accounts if they are changed
local latest = {}

-- changed accounts, by scope
local accounts = {}

local ledger = {epoch = 0, seq = 0, complete = 0, repairs = 0, token = '', writes = 0}

-- changes of rates and one-time costs, written by write()
local changes = {}
