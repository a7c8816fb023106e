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
-- Returns {code, detail ...}, as commit.lua does: OK, LOST, FENCED, ALREADY, CURSOR, TYPE, OUTPUT.
--
-- Nothing in Redis rolls back. So every check comes before the first write; and the first write is
-- an XADD, which Redis refuses at out-of-memory, and with it the whole script.

local call, pcall_, A = redis.call, redis.pcall, ARGV
local m, r = tonumber(A[10]), tonumber(A[11])
local first_out = 12
local first_dlq = first_out + 2 * m
local cursor = A[first_dlq - 2]

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

local function last_generated(key)
  local info = call('XINFO', 'STREAM', key)
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' then return info[i + 1] end
  end
end

-- 1. Is this the writer, and does the combination stand where this batch begins?
local kind = type_of(KEYS[1])
if kind == 'none' then return {'LOST'} end
if kind ~= 'hash' then return {'TYPE', KEYS[1], kind} end
local st = call('HMGET', KEYS[1], 'epoch', 'cursor', 'seq', 'digest')
if st[1] ~= A[1] then return {'FENCED', st[1] or ''} end
if st[2] == cursor then return {'ALREADY', st[3] or '', st[4] or ''} end
if st[2] ~= A[2] then return {'CURSOR', st[2] or ''} end

-- 2. Can everything be written?
local counts, firsts = {m, r}, {first_out, first_dlq}
for i = 1, 2 do
  local key = KEYS[1 + i]
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

-- 3. Write.
for i = first_out, first_dlq - 1, 2 do call('XADD', KEYS[2], A[i], 'p', A[i + 1]) end
for i = first_dlq, first_dlq + 5 * r - 1, 5 do
  call('XADD', KEYS[3], A[i],
    'code', A[i + 1], 'reason', A[i + 2], 'size', A[i + 3], 'head', A[i + 4])
end
call('HSET', KEYS[1], 'cursor', cursor, 'seq', A[3], 'n', A[4], 'digest', A[5],
  'joined', A[6], 'combiner', A[7])

-- The batch is committed. What follows is housekeeping: a failure must not look like a refusal.
for i = 1, 2 do
  if counts[i] > 0 and A[7 + i] ~= '0' then
    pcall_('XTRIM', KEYS[1 + i], 'MAXLEN', '~', A[7 + i])
  end
end
return {'OK'}
