-- Make st and the output streams of a feed consistent again: move st forward, or append answers.
--
-- KEYS  1 st     hash    position of the feed
--       2 in     stream  examples
--       3 out    stream  predictions
--       4 met    stream  validity reports
--       5 alarms stream  alarms
--       6 dlq    stream  rejected input
--       7 lease  string  who runs the feed
--
-- ARGV  1 epoch    in st when it was read
--       2 cursor   likewise
--       3 lease    value of a dead holder; "" for none
--       4 last     last generated ID of out
--       5 cursor, 6 seq, 7 n, 8 digest   of st after the repair
--       9 drops    "1" to forget the snapshots, so that a worker replays all input
--      10 m, 11 k, 12 a, 13 r   numbers of entries for out, met, alarms, dlq
--      then m times  id, payload
--           k times  id, payload
--           a times  id, payload
--           r times  id, then names and values of four fields
--
-- Returns {code, detail ...}: OK, a refusal of streams.lua, or
--   HELD   a worker has taken the lease
--   MOVED  out was written to meanwhile
-- The epoch is incremented, so that an earlier writer is refused.

local GROUP = 'osvm'
local m, k, a, r = tonumber(A[10]), tonumber(A[11]), tonumber(A[12]), tonumber(A[13])
local firsts = {14, 14 + 2 * m, 14 + 2 * (m + k), 14 + 2 * (m + k + a)}
local counts = {m, k, a, r}

-- 1. Is everything as it was when the answers were computed?
local refused = position_refused(KEYS[1], A[1], A[2], A[2])
if refused then return refused end
if (call('GET', KEYS[7]) or '') ~= A[3] then return {'HELD'} end
if type_of(KEYS[3]) ~= 'stream' then return {'TYPE', KEYS[3], type_of(KEYS[3])} end
if info_of(KEYS[3])['last-generated-id'] ~= A[4] then return {'MOVED'} end

-- 2. Can everything be written?
for i = 1, 4 do
  refused = stream_refused(KEYS[2 + i], counts[i], A[firsts[i]])
  if refused then return refused end
end

-- 3. Write.
add_payloads(KEYS[3], m, firsts[1])
add_payloads(KEYS[4], k, firsts[2])
add_payloads(KEYS[5], a, firsts[3])
add_dead_letters(KEYS[6], r, firsts[4])
call('HSET', KEYS[1], 'cursor', A[5], 'seq', A[6], 'n', A[7], 'digest', A[8])
if A[9] == '1' then call('HSET', KEYS[1], 'snapshot', '', 'previous', '', 'marks', '') end
call('HINCRBY', KEYS[1], 'epoch', 1)
pcall_('XGROUP', 'SETID', KEYS[2], GROUP, A[5])
return {'OK'}
