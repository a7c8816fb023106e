-- Renew the leases that this process holds, and return the holders of the others.
--
-- KEYS  1 .. lease  string  who runs the feed; on a cluster, all keys are in one slot
--
-- ARGV  1 value         of this process
--       2 milliseconds  after which a lease expires
--       3 max_bytes     of another holder's value to return
--
-- Returns one string for each key: "mine" if it was renewed, "none" if there is no lease, "type" if
-- the key holds another type, or "held " followed by another holder's value.

local replies = {}
for i, key in ipairs(KEYS) do
  local value = redis.pcall('GET', key)
  if type(value) == 'table' then
    replies[i] = 'type'
  elseif not value then
    replies[i] = 'none'
  elseif value == ARGV[1] then
    redis.call('SET', key, ARGV[1], 'PX', ARGV[2])
    replies[i] = 'mine'
  else
    replies[i] = 'held ' .. string.sub(value, 1, tonumber(ARGV[3]))
  end
end
return replies
