-- Renew those of the leases that are one's own, and see who holds the others.
--
-- KEYS  1 .. lease  string  who runs the feed; on a cluster of one slot
--
-- ARGV  1 value         one's own
--       2 milliseconds  after which a lease goes by itself
--       3 bytes         of another's value that are returned, at most
--
-- Returns one text for each key: "mine" where it was renewed, "none" where there is no lease, "type"
-- where the key holds another type, and "held " with the value where another holds it.

local told = {}
for i, key in ipairs(KEYS) do
  local value = redis.pcall('GET', key)
  if type(value) == 'table' then
    told[i] = 'type'
  elseif not value then
    told[i] = 'none'
  elseif value == ARGV[1] then
    redis.call('SET', key, ARGV[1], 'PX', ARGV[2])
    told[i] = 'mine'
  else
    told[i] = 'held ' .. string.sub(value, 1, tonumber(ARGV[3]))
  end
end
return told
