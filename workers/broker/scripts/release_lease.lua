-- Delete a lease that this process still holds.
--
-- KEYS  1 lease  string  who runs the feed
--
-- ARGV  1 value  of this process
--
-- Returns 1; 0 if this process does not hold it.

if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
