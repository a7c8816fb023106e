-- Reset a feed to the position of a backup, atomically; loaded after input.lua.
--
-- KEYS  1 st     hash    position of the feed
--       2 in     stream  examples
--       3 out    stream  predictions
--       4 met    stream  validity reports
--       5 alarms stream  alarms
--       6 dlq    stream  rejected input
--       7 ..     string  parts of the snapshot, already written
--
-- ARGV  1 cursor     ID of the last input entry before the snapshot
--       2 seq        input entries answered up to it
--       3 overwrite  "1" if an existing state may be replaced
--       then names and values of the fields of st
--
-- Returns {code, detail ...}: OK, or
--   BEGUN              there is a state that may not be replaced
--   AHEAD, key, id     an output stream has later entries than the backup
--   TYPE, key, type    a key holds another type
--   SNAPSHOT           a part of the snapshot is missing

local cursor, seq = A[1], tonumber(A[2])

-- Return the fields of a state at this cursor that count the input, as `erase` replaces it; {} if there
-- is none, or the input was recreated since it was counted.
local function counts_at_cursor(kind)
  local held = kind == 'hash' and call('HMGET', KEYS[1], 'cursor', 'gone', 'added', 'run_id') or {}
  if held[1] ~= cursor or not held[2] or not held[3] or type_of(KEYS[2]) ~= 'stream' then return {} end
  if is_recreated(info_of(KEYS[2]), cursor, held[3]) then return {} end
  return {'gone', held[2], 'added', held[3], 'run_id', held[4] or '0'}
end

-- 1. Can everything be written? Nothing in Redis rolls back.
local kind = type_of(KEYS[1])
if kind ~= 'none' and kind ~= 'hash' then return {'TYPE', KEYS[1], kind} end
if kind == 'hash' and A[3] ~= '1' then return {'BEGUN'} end
for i = 2, 6 do
  kind = type_of(KEYS[i])
  if kind ~= 'none' and kind ~= 'stream' then return {'TYPE', KEYS[i], kind} end
  if kind == 'stream' and i > 2 then
    local last = info_of(KEYS[i])['last-generated-id']
    if is_before(cursor, last) then return {'AHEAD', KEYS[i], last} end
  end
end
for i = 7, #KEYS do
  if call('EXISTS', KEYS[i]) == 0 then return {'SNAPSHOT'} end
end

local counts = counts_at_cursor(type_of(KEYS[1]))

-- 2. New input must get IDs after the cursor, whatever the clock says. A lost stream gets the count
-- of the answered entries (Redis 7 and later). A feed that starts from a model has no earlier entries:
-- a worker, which is not permitted XSETID, can start it.
if type_of(KEYS[2]) == 'none' then
  call('XGROUP', 'CREATE', KEYS[2], 'osvm', cursor, 'MKSTREAM')
  if cursor ~= '0-0'
    and pcall_('XSETID', KEYS[2], cursor, 'ENTRIESADDED', A[2], 'MAXDELETEDID', '0-0')['err'] then
    call('XSETID', KEYS[2], cursor)
  end
elseif is_before(info_of(KEYS[2])['last-generated-id'], cursor) then
  call('XSETID', KEYS[2], cursor)
end

-- Lost answers stay lost: the next ones get later IDs (see consistency.py).
if type_of(KEYS[3]) == 'stream' and is_before(info_of(KEYS[3])['last-generated-id'], cursor) then
  call('XSETID', KEYS[3], cursor)
end

-- 3. Write. The epoch fences off a worker of the replaced state.
local epoch = tonumber(call('HGET', KEYS[1], 'epoch') or '0') or 0
call('DEL', KEYS[1])
call('HSET', KEYS[1], unpack(A, 4))
if epoch > tonumber(call('HGET', KEYS[1], 'epoch')) then
  call('HSET', KEYS[1], 'epoch', string.format('%.0f', epoch))
end
call('HINCRBY', KEYS[1], 'epoch', 1)
local info = info_of(KEYS[2])
if #counts > 0 then
  call('HSET', KEYS[1], unpack(counts))
elseif info['entries-added'] then
  -- Negative if a feed starts from a model: seq counts entries that its input never had.
  local least = cursor == '0-0' and -seq or 0
  local trimmed = math.max(least, info['entries-added'] - info['length'] - seq)
  call('HSET', KEYS[1], 'gone',
    string.format('%.0f', trimmed) .. ' ' .. info['max-deleted-entry-id'])
end
for i = 7, #KEYS do call('PERSIST', KEYS[i]) end
return {'OK'}
