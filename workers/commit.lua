-- Commit one batch: its answers, its reports, its rejected entries and the feed's new position,
-- all visible at once or not at all.
--
-- KEYS  1 st     hash    position of the feed
--       2 in     stream  examples
--       3 out    stream  predictions
--       4 met    stream  validity reports
--       5 dlq    stream  rejected input
--       6 snap   string  the snapshot that becomes the newest one   (only when it moves)
--       7 ..     string  snapshots that are no longer needed        (only when it moves)
--
-- ARGV  1 epoch    of the writer
--       2 cursor   ID of the last committed input entry, "0-0" at the start of a feed
--       3 seq      input entries answered      \
--       4 n        examples learned             > after this batch
--       5 digest   chained SHA-256, hex        /
--       6 keep_out, 7 keep_met, 8 keep_dlq   entries to retain, about; 0 keeps all
--       9 snapshot, 10 previous   pointers to store; both "" when they do not move
--      11 trim     input before this ID is no longer needed; "" trims nothing
--      12 m, 13 k, 14 r   entries for out, met, dlq
--      then m times  id, payload                        every input entry of the batch, in order
--           k times  id, payload
--           r times  id, code, reason, size, head
--   m = 0 moves the snapshot pointers and nothing else (at a graceful stop).
--
-- Returns {code, detail ...}
--   OK                     everything is written
--   LOST                   there is no st: the feed was flushed or deleted
--   FENCED, epoch          the epoch in st is not the writer's
--   ALREADY, seq, digest   this batch was committed before: the reply got lost
--   CURSOR, cursor         st stands somewhere else
--   GAP                    the entries after the cursor are not this batch
--   TYPE, key, type        a key holds another type
--   OUTPUT, key, id        a stream already holds this ID or a later one
--   SNAPSHOT               the snapshot to point at is not there (it expired, unreferenced)
--
-- Nothing in Redis rolls back. So every check comes before the first write; and the first write is
-- an XADD, which Redis refuses at out-of-memory, and with it the whole script.

local call, pcall_, A = redis.call, redis.pcall, ARGV
local GROUP, FIELD = 'osvm', 'p'
local m, k, r = tonumber(A[12]), tonumber(A[13]), tonumber(A[14])
local first_out = 15
local first_met = first_out + 2 * m
local first_dlq = first_met + 2 * k
local cursor = A[2]
if m > 0 then cursor = A[first_met - 2] end

local function type_of(key) return call('TYPE', key)['ok'] end

-- Parts of IDs reach 2^64, beyond what Lua's numbers hold: canonical decimals compare by length,
-- then digit by digit.
local function less(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end

local function is_before(a, b)
  local a_time, a_count = string.match(a, '^(%d+)-(%d+)$')
  local b_time, b_count = string.match(b, '^(%d+)-(%d+)$')
  if a_time ~= b_time then return less(a_time, b_time) end
  return less(a_count, b_count)
end

-- Not the top entry: that one may have been deleted, and Redis would still refuse the ID.
local function last_generated(key)
  local info = call('XINFO', 'STREAM', key)
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' then return info[i + 1] end
  end
end

-- 1. Is this the writer, and is the feed where this batch begins?
local kind = type_of(KEYS[1])
if kind == 'none' then return {'LOST'} end
if kind ~= 'hash' then return {'TYPE', KEYS[1], kind} end
local st = call('HMGET', KEYS[1], 'epoch', 'cursor', 'seq', 'digest')
if st[1] ~= A[1] then return {'FENCED', st[1] or ''} end
if m > 0 and st[2] == cursor then return {'ALREADY', st[3] or '', st[4] or ''} end
if st[2] ~= A[2] then return {'CURSOR', st[2] or ''} end

-- 2. Are the entries after the cursor this batch? The first m of them are read again, whole: there
-- is no cheaper command that would show an entry deleted from the middle. (Between two entries
-- none can be inserted; a stream that was deleted and filled anew differs in its IDs.)
if m > 0 then
  kind = type_of(KEYS[2])
  if kind ~= 'stream' and kind ~= 'none' then return {'TYPE', KEYS[2], kind} end
  local held = call('XRANGE', KEYS[2], '(' .. A[2], '+', 'COUNT', m)
  if #held ~= m then return {'GAP'} end
  local id = first_out
  for i = 1, m do
    if held[i][1] ~= A[id] then return {'GAP'} end
    id = id + 2
  end
end

-- 3. Can everything be written?
local counts, firsts = {m, k, r}, {first_out, first_met, first_dlq}
for i = 1, 3 do
  local key = KEYS[2 + i]
  kind = type_of(key)
  if kind == 'stream' then
    local id = A[firsts[i]]
    if counts[i] > 0 and not is_before(last_generated(key), id) then
      return {'OUTPUT', key, id}
    end
  elseif kind ~= 'none' then
    return {'TYPE', key, kind}
  end
end
local moves = A[9] ~= ''
if moves and call('EXISTS', KEYS[6]) == 0 then return {'SNAPSHOT'} end

-- 4. Write.
local out, met, dlq = KEYS[3], KEYS[4], KEYS[5]
for i = first_out, first_met - 1, 2 do call('XADD', out, A[i], FIELD, A[i + 1]) end
for i = first_met, first_dlq - 1, 2 do call('XADD', met, A[i], FIELD, A[i + 1]) end
for i = first_dlq, first_dlq + 5 * r - 1, 5 do
  call('XADD', dlq, A[i], 'code', A[i + 1], 'reason', A[i + 2], 'size', A[i + 3], 'head', A[i + 4])
end
if moves then
  call('PERSIST', KEYS[6])
  call('HSET', KEYS[1], 'cursor', cursor, 'seq', A[3], 'n', A[4], 'digest', A[5],
    'snapshot', A[9], 'previous', A[10])
else
  call('HSET', KEYS[1], 'cursor', cursor, 'seq', A[3], 'n', A[4], 'digest', A[5])
end

-- The batch is committed. What follows is housekeeping: a failure must not look like a refusal.
if m > 0 and pcall_('XGROUP', 'SETID', KEYS[2], GROUP, cursor)['err'] then
  pcall_('XGROUP', 'CREATE', KEYS[2], GROUP, cursor)
end
for i = 1, 3 do
  if counts[i] > 0 and A[5 + i] ~= '0' then
    pcall_('XTRIM', KEYS[2 + i], 'MAXLEN', '~', A[5 + i])
  end
end
if moves then
  for i = 7, #KEYS do pcall_('UNLINK', KEYS[i]) end
  if A[11] ~= '' then pcall_('XTRIM', KEYS[2], 'MINID', '=', A[11]) end
end
return {'OK'}
