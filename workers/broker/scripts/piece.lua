-- Read a piece of a string. GETRANGE does the same, but a worker may only GET
-- (deploy/redis/users.acl).
--
-- KEYS  1 string
--
-- ARGV  1 first, 2 last   bytes, counted from 1
--
-- Returns {bytes of the whole string, piece}; nothing if there is no such key.

local value = redis.call('GET', KEYS[1])
if not value then return {} end
return {#value, string.sub(value, tonumber(ARGV[1]), tonumber(ARGV[2]))}
