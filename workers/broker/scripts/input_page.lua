-- Find feeds with input in a page of this server's keys.
--
-- KEYS  none: on a cluster each node returns its own keys
--
-- ARGV  1 cursor     of SCAN, "0" at first
--       2 count      approximate number of keys in the page, of any kind
--       3 max_bytes  of a name; longer ones, which anyone may have written, are left out
--
-- Returns {cursor, names}.

local page = redis.call('SCAN', ARGV[1], 'MATCH', 'osvm:{*}:in', 'COUNT', ARGV[2], 'TYPE', 'stream')
local names = {}
for _, key in ipairs(page[2]) do
  local name = string.sub(key, 7, -5)
  if #name <= tonumber(ARGV[3]) then names[#names + 1] = name end
end
return {page[1], names}
