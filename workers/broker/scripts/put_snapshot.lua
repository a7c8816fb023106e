-- Write a part of a snapshot; a commit may then point to the snapshot.
--
-- KEYS  1 st    hash    position of the feed
--       2 part  string
--
-- ARGV  1 pointer  to the snapshot
--       2 seconds  after which the part expires
--       3 bytes    of the part
--
-- Returns the reply to SET. A snapshot that the feed already points to does not expire: the caller
-- may be a writer that was replaced long ago, or one whose reply was lost.

local held = redis.call('HMGET', KEYS[1], 'snapshot', 'previous')
if held[1] == ARGV[1] or held[2] == ARGV[1] then return redis.call('SET', KEYS[2], ARGV[3]) end
return redis.call('SET', KEYS[2], ARGV[3], 'EX', ARGV[2])
