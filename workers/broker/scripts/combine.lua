-- Commit one batch of a combination: its answers, its dead letters, and where it stands in each of
-- its sources, all visible at once or not at all. The sources live in other hash slots, so nothing
-- of them is read or written here.
--
-- KEYS  1 st   hash    position of the combination
--       2 out  stream  answers
--       3 dlq  stream  what could not be joined
--
-- ARGV  1 epoch     of the writer
--       2 cursor    in the first source before this batch, "0-0" at the start
--       3 seq       answers of the first source decided  \
--       4 n         labels learned                        > after this batch
--       5 digest    chained SHA-256, hex                 /
--       6 joined    where to go on in every source, JSON
--       7 combiner  snapshot of the combiner
--       8 keep_out, 9 keep_dlq   entries to retain, about; 0 keeps all
--      10 m, 11 r   entries for out and dlq; m is at least 1
--      then m times  id, payload
--           r times  id, code, reason, size, head
--
-- Returns {code, detail ...}: OK, or what streams.lua refuses.

local m, r = tonumber(A[10]), tonumber(A[11])
local first_out = 12
local first_dlq = first_out + 2 * m
local cursor = A[first_dlq - 2]

-- 1. Is this the writer, and is the combination at the beginning of this batch?
local refused = position_refused(KEYS[1], A[1], A[2], cursor)
if refused then return refused end

-- 2. Can everything be written?
local counts, firsts = {m, r}, {first_out, first_dlq}
for i = 1, 2 do
  refused = stream_refused(KEYS[1 + i], counts[i], A[firsts[i]])
  if refused then return refused end
end

-- 3. Write.
add_payloads(KEYS[2], m, first_out)
add_dead_letters(KEYS[3], r, first_dlq)
call('HSET', KEYS[1], 'cursor', cursor, 'seq', A[3], 'n', A[4], 'digest', A[5],
  'joined', A[6], 'combiner', A[7])

-- The batch is committed. What follows is housekeeping: a failure must not look like a refusal.
for i = 1, 2 do trim(KEYS[1 + i], counts[i], A[7 + i]) end
return {'OK'}
