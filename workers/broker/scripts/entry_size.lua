-- Measure the first entry of a stream after an ID, without sending it.
--
-- KEYS  1 stream
--
-- ARGV  1 after  ID
--
-- Returns {id, bytes of field names and values}; {} if there is no such entry.

local found = redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', 1)[1]
if not found then return {} end
local bytes = 0
for _, part in ipairs(found[2]) do bytes = bytes + #part end
return {found[1], bytes}
