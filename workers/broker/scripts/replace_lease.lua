-- Take a lease if its value is still the one that was read.
--
-- KEYS  1 lease  string  who runs the feed
--
-- ARGV  1 expected      value; "" for no lease
--       2 value         of this process
--       3 milliseconds  after which it expires
--
-- Returns 1; 0 if the lease has another value.

if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
