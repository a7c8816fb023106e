-- Give up a lease that is still one's own.
--
-- KEYS  1 lease  string  who runs the feed
--
-- ARGV  1 value  one's own
--
-- Returns 1, or 0 if another process holds it by now.

if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
