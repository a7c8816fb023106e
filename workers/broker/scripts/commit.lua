-- Commit one batch atomically: answers, reports, alarms, dead letters and the feed's new position.
--
-- KEYS  1 st     hash    position of the feed
--       2 in     stream  examples
--       3 out    stream  predictions
--       4 met    stream  validity reports
--       5 alarms stream  alarms
--       6 dlq    stream  entries that were rejected
--       7 ids    hash    where the answer to each recent id of producers is; derived, so unchecked
--       8 ..     string  parts of the snapshot that becomes the newest one  (if there is a new one)
--         ..     string  parts of snapshots to delete                       (if there is a new one)
--
-- ARGV  1 epoch    of the writer
--       2 cursor   ID of the last committed input entry, "0-0" at the start of a feed
--       3 seq      input entries answered      \
--       4 n        examples learned             > after this batch
--       5 digest   chained SHA-256, hex        /
--       6 keep_out, 7 keep_met, 8 keep_alarms, 9 keep_dlq   approximate entries to keep; 0 keeps all
--      10 from_out, 11 from_met, 12 from_alarms, 13 from_dlq   trim entries before this ID; "" none
--      14 trim     trim the input before this ID; "" trims nothing
--      15 parts    of the snapshot that becomes the newest one; 0 for none
--      16 f        further fields of st to set, such as snapshot pointers
--      17 m, 18 k, 19 a, 20 r   numbers of entries for out, met, alarms, dlq
--      21 d        changes of ids
--      then f times  name, value
--           m times  id, payload                        every input entry of the batch, in order
--           k times  id, payload
--           a times  id, payload
--           r times  id, then names and values of four fields
--           d times  id of a producer, value; "" removes the id
--   m = 0 writes fields of st and nothing else (at a graceful stop).
--
-- Returns {code, detail ...}: OK, a refusal of streams.lua, or
--   GAP                    the entries after the cursor are not this batch
--   INPUT_RECREATED        the input was recreated, or its entries were counted by another server
--                          (Redis 7 and later; see input.lua)
--   DELETED, cursor, gone  input after the cursor was deleted unread (Redis 7 and later); with
--                          `gone` as the field of st, the feed continues without those entries
--   SNAPSHOT               a part of the new snapshot expired

local GROUP = 'osvm'
local parts, f = tonumber(A[15]), tonumber(A[16])
local m, k, a, r = tonumber(A[17]), tonumber(A[18]), tonumber(A[19]), tonumber(A[20])
local first_field = 22
local first_out = first_field + 2 * f
local first_met = first_out + 2 * m
local first_alarm = first_met + 2 * k
local first_dlq = first_alarm + 2 * a
local first_id = first_dlq + 9 * r
local cursor = A[2]
if m > 0 then cursor = A[first_met - 2] end

-- Redis 7 and later store the largest ID deleted by XDEL, and the number of entries ever added. The
-- entries that were gone when the feed was created are in the field `gone` of st, as "count id", and
-- are not missed. XTRIM removes the oldest entries first, so the count shows a loss only once nothing
-- up to the cursor is left.
-- Returns nil, or the value of `gone` with which the feed continues without the missing entries.
local function missing(info, before, seq, gone)
  local deleted, added = info['max-deleted-entry-id'], info['entries-added']
  if not deleted then return nil end
  local count, known = string.match(gone or '- 0-0', '^(%S+) (%S+)$')
  local is_missing = deleted ~= known and is_before(before, deleted)
  if tonumber(count) and is_before(before, info['first-entry'][1]) then
    local unread = added - info['length'] - tonumber(seq)
    if unread > tonumber(count) then is_missing, count = true, string.format('%.0f', unread) end
  end
  return is_missing and count .. ' ' .. deleted or nil
end

-- Check that the batch can be added to the outputs from number `first` on. The outputs without new
-- entries must be streams, or not exist: one XREAD checks them all.
local function outputs_refused(first, counts, firsts)
  local others = {}
  for i = first, 4 do
    if counts[i] == 0 then
      others[#others + 1] = KEYS[2 + i]
    else
      local refused = stream_refused(KEYS[2 + i], counts[i], A[firsts[i]])
      if refused then return refused end
    end
  end
  local args = {'STREAMS', unpack(others)}
  for _ = 1, #others do args[#args + 1] = '$' end
  local found = #others > 0 and pcall_('XREAD', unpack(args))
  if not found or not found['err'] then return nil end
  for _, key in ipairs(others) do
    local refused = failed(found, key, 'stream')
    if refused ~= found then return refused end
  end
  return found
end

-- 1. Is this the writer, and is the feed at the beginning of this batch?
local refused, st = position_refused(KEYS[1], A[1], A[2], cursor)
if refused then return refused end

-- 2. Are the entries after the cursor this batch? They are read again: no cheaper command shows a
-- deletion in the middle. (No entry can be inserted between two others, and a recreated stream has
-- other IDs.)
local input
if m > 0 then
  local held = pcall_('XRANGE', KEYS[2], '(' .. A[2], '+', 'COUNT', m)
  refused = failed(held, KEYS[2], 'stream')
  if refused then return refused end
  if #held ~= m then return {'GAP'} end
  local id = first_out
  for i = 1, m do
    if held[i][1] ~= A[id] then return {'GAP'} end
    id = id + 2
  end
  input = info_of(KEYS[2])
  if is_recreated(input, A[2], st.added) then return {'INPUT_RECREATED'} end
  local gone = missing(input, A[2], st.seq, st.gone)
  if gone then return {'DELETED', A[2], gone} end
end

-- 3. Can everything be written? The XADD of the first answer, if any, checks `out`: a refused XADD
-- writes nothing.
local counts, firsts = {m, k, a, r}, {first_out, first_met, first_alarm, first_dlq}
refused = outputs_refused(m > 0 and 2 or 1, counts, firsts)
if refused then return refused end
for i = 8, 7 + parts do
  if call('EXISTS', KEYS[i]) == 0 then return {'SNAPSHOT'} end
end

-- 4. Write.
if m > 0 then
  local added = pcall_('XADD', KEYS[3], A[first_out], 'p', A[first_out + 1])
  if type(added) == 'table' and added['err'] then
    return stream_refused(KEYS[3], m, A[first_out]) or added
  end
  add_payloads(KEYS[3], m - 1, first_out + 2)
end
add_payloads(KEYS[4], k, first_met)
add_payloads(KEYS[5], a, first_alarm)
add_dead_letters(KEYS[6], r, first_dlq)
for i = 8, 7 + parts do call('PERSIST', KEYS[i]) end
local fields = {unpack(A, first_field, first_out - 1)}
if input and input['entries-added'] then
  fields[#fields + 1], fields[#fields + 2] = 'added', counted(input, m)
end
call('HSET', KEYS[1], 'cursor', cursor, 'seq', A[3], 'n', A[4], 'digest', A[5], unpack(fields))

-- The batch is committed. An error of the rest, housekeeping, must not look like a refusal.
if m > 0 and pcall_('XGROUP', 'SETID', KEYS[2], GROUP, cursor)['err'] then
  pcall_('XGROUP', 'CREATE', KEYS[2], GROUP, cursor)
end
for i = 1, 4 do trim(KEYS[2 + i], counts[i], A[5 + i], A[9 + i]) end
set_ids(KEYS[7], first_id)
for i = 8 + parts, #KEYS do pcall_('UNLINK', KEYS[i]) end
if A[14] ~= '' then pcall_('XTRIM', KEYS[2], 'MINID', '=', A[14]) end
return {'OK'}
