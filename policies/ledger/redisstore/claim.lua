-- Assigns a resource to an intent.
--
-- KEYS  1, 2  intents
-- ARGV  1, 2  see openIntents   3  created   4  lookalike   5  ID   6  owner   7  whether the resource has a name (1 or 0)
--
-- Returns {1 if the intents are known and complete, else 0; [epoch, writes, now]; 1 if the resource belongs to the intent, 0 if
-- another intent has created it or may have}.

openIntents(1, 1, {ARGV[3], ARGV[4]})
if not intents.known or intents.complete == 0 then return {0, format(THREE, intents.epoch, intents.writes, now), 0} end
local function reply(mine) return {1, format(THREE, intents.epoch, intents.writes, now), mine} end
local created = intents.value[ARGV[3]]
if created then return reply(created == ARGV[5] and 1 or 0) end
for line in string.gmatch(intents.value[ARGV[4]] or '', '[^\n]+') do
  local other, owner = string.match(line, '^(%S+) (.*)$')
  if other ~= ARGV[5] and (ARGV[7] == '0' or owner ~= ARGV[6]) then return reply(0) end
end
set(ARGV[3], ARGV[5])
saveIntents()
return reply(1)
