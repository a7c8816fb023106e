-- Make st and the output streams of a feed agree again: move st forward, or append answers.
--
-- KEYS  1 st     hash    position of the feed
--       2 in     stream  examples
--       3 out    stream  predictions
--       4 met    stream  validity reports
--       5 dlq    stream  rejected input
--       6 lease  string  who runs the feed
--
-- ARGV  1 epoch    that st was read under
--       2 cursor   in st
--       3 lease    that was found to be nobody's any more; "" for none
--       4 last     the last ID that out was given
--       5 cursor, 6 seq, 7 n, 8 digest   what st says after this
--       9 m, 10 k, 11 r   entries for out, met, dlq
--      then m times  id, payload
--           k times  id, payload
--           r times  id, code, reason, size, head
--
-- Returns {code, detail ...}: OK, what streams.lua refuses, or
--   HELD   somebody took the feed
--   MOVED  out was written to
-- The epoch grows by one, so that whoever worked on what was there before is refused.

local GROUP = 'osvm'
local m, k, r = tonumber(A[9]), tonumber(A[10]), tonumber(A[11])
local firsts, counts = {12, 12 + 2 * m, 12 + 2 * (m + k)}, {m, k, r}

-- 1. Is everything as it was when the answers were computed?
local refused = position_refused(KEYS[1], A[1], A[2], A[2])
if refused then return refused end
if (call('GET', KEYS[6]) or '') ~= A[3] then return {'HELD'} end
if type_of(KEYS[3]) ~= 'stream' then return {'TYPE', KEYS[3], type_of(KEYS[3])} end
if info_of(KEYS[3])['last-generated-id'] ~= A[4] then return {'MOVED'} end

-- 2. Can everything be written?
for i = 1, 3 do
  refused = stream_refused(KEYS[2 + i], counts[i], A[firsts[i]])
  if refused then return refused end
end

-- 3. Write.
add_payloads(KEYS[3], m, firsts[1])
add_payloads(KEYS[4], k, firsts[2])
add_dead_letters(KEYS[5], r, firsts[3])
call('HSET', KEYS[1], 'cursor', A[5], 'seq', A[6], 'n', A[7], 'digest', A[8])
call('HINCRBY', KEYS[1], 'epoch', 1)
pcall_('XGROUP', 'SETID', KEYS[2], GROUP, A[5])
return {'OK'}
