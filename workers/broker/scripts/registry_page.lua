-- Read a page of the list of feeds, to which producers may have written anything.
--
-- KEYS  1 registry  set  names of feeds
--
-- ARGV  1 cursor     of SSCAN, "0" at first
--       2 count      approximate number of names in the page
--       3 max_bytes  of a name; longer ones are counted, but not returned
--
-- Returns {cursor, names, number of longer ones}.

local page = redis.call('SSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
local names, longer = {}, 0
for _, name in ipairs(page[2]) do
  if #name <= tonumber(ARGV[3]) then
    names[#names + 1] = name
  else
    longer = longer + 1
  end
end
return {page[1], names, longer}
