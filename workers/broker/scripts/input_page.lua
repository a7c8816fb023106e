-- Read a page of the keys of this server for feeds with input; producers may have made any key.
--
-- KEYS  none: on a cluster each node returns its own keys
--
-- ARGV  1 cursor  of SCAN, "0" at first
--       2 count   keys in the page, about, of any kind
--       3 longest bytes of a name; longer ones are left out
--
-- Returns {cursor, names}.

local page = redis.call('SCAN', ARGV[1], 'MATCH', 'osvm:{*}:in', 'COUNT', ARGV[2], 'TYPE', 'stream')
local names = {}
for _, key in ipairs(page[2]) do
  local name = string.sub(key, 7, -5)
  if #name <= tonumber(ARGV[3]) then names[#names + 1] = name end
end
return {page[1], names}
