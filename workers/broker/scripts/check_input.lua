-- See whether the input is still the stream that the feed answers, while there is nothing to commit.
--
-- KEYS  1 st  hash    position of the feed
--       2 in  stream  examples
--
-- ARGV  1 epoch  of the writer
--
-- Returns {"OK", uncounted}: 1 where the input is counted from here on only; or {code, detail ...},
-- what input.lua refuses. Another writer's feed is let be: the next commit says whose it is.

if call('HGET', KEYS[1], 'epoch') ~= A[1] then return {'OK', 0} end
return input_refused(KEYS[1], KEYS[2]) or {'OK', count_input(KEYS[1], KEYS[2])}
