-- Note that from now on another environment computes the feed.
--
-- KEYS  1 st  hash  position of the feed
--
-- ARGV  1 epoch        of the writer
--       2 environment  JSON
--
-- Returns 1, or 0 where a newer writer owns the feed.

if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'environment', ARGV[2])
return 1
