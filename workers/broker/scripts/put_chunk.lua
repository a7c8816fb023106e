-- Write a chunk of the memory, unless it is there; a commit may then point to it.
--
-- KEYS  1 chunk  string; its name has the hash of its bytes
--
-- ARGV  1 seconds  after which the chunk expires
--       2 bytes    of the chunk
--
-- A chunk that a snapshot points to does not expire, and stays so: the caller may be a writer that
-- was replaced long ago.

return redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[1], 'NX') or 'OK'
