-- Keep a finished fit of the memory's trees: the newest two of its kind.
--
-- KEYS  1 st    hash    position of the feed
--       2 fits  stream  fits of this kind
--
-- ARGV  1 epoch    of the writer
--       2 seconds  after which all fits of this kind expire, if no other follows
--       then names and values of the fields of the entry
--
-- Returns 1; or 0 if a newer writer owns the feed: the fit may have learned from erased rows.

if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return 0 end
redis.call('XADD', KEYS[2], 'MAXLEN', '=', 2, '*', unpack(ARGV, 3))
redis.call('EXPIRE', KEYS[2], ARGV[2])
return 1
