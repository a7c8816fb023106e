-- Write the hash of ids anew at a take-over, in parts: restored, forked and reset feeds have none yet.
--
-- KEYS  1 st    hash    position of the feed
--       2 ids   hash    where the answer to each recent id of producers is
--
-- ARGV  1 epoch  of the writer
--       2 first  "1" if this is the first part
--       then id of a producer, value ...
--
-- Returns 1; or 0 if a newer writer owns the feed.

if call('HGET', KEYS[1], 'epoch') ~= A[1] then return 0 end
if A[2] == '1' then call('UNLINK', KEYS[2]) end
set_ids(KEYS[2], 3)
return 1
