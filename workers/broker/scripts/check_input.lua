-- Check, while there is nothing to commit, that the input was not deleted, renamed or recreated.
--
-- KEYS  1 st  hash    position of the feed
--       2 in  stream  examples
--
-- ARGV  1 epoch  of the writer
--
-- Returns {"OK", uncounted}, with 1 if the input was not counted until now; or {code, detail ...}, a
-- refusal of input.lua. If another writer owns the feed, nothing is checked: the next commit fails.

if call('HGET', KEYS[1], 'epoch') ~= A[1] then return {'OK', 0} end
return input_refused(KEYS[1], KEYS[2]) or {'OK', count_input(KEYS[1], KEYS[2])}
