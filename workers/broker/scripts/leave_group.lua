-- Take a consumer out of a group, unless entries are pending under its name: they would be lost.
--
-- KEYS  1 stream
--
-- ARGV  1 group, 2 consumer
--
-- Returns 1 where it is gone.

if #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) > 0 then return 0 end
redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
return 1
