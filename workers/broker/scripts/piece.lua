-- Read a piece of a string, for users who may GET but not GETRANGE (deploy/redis/users.acl).
--
-- KEYS  1 string
--
-- ARGV  1 first, 2 last   bytes, counted from 1
--
-- Returns {bytes of the whole string, piece}; {} if the key does not exist.

local value = redis.call('GET', KEYS[1])
if not value then return {} end
return {#value, string.sub(value, tonumber(ARGV[1]), tonumber(ARGV[2]))}
