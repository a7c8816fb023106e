-- Take a lease, or renew it, where its value is the one that was looked at.
--
-- KEYS  1 lease  string  who runs the feed
--
-- ARGV  1 held          value that must be there; "" for none
--       2 value         to put in its place
--       3 milliseconds  after which it goes by itself
--
-- Returns 1, or 0 where another value is there.

if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
