-- Take a lease, or renew it, if its value is still the one that was read.
--
-- KEYS  1 lease  string  who runs the feed
--
-- ARGV  1 held          value that must be there; "" for none
--       2 value         to put in its place
--       3 milliseconds  after which it expires
--
-- Returns 1, or 0 if the value is another one.

if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
