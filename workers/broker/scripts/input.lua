-- Functions of the scripts that check the input; loaded after streams.lua.
--
-- A stream that was deleted, or renamed, and recreated has lost its unanswered entries. In Redis 7
-- and later a stream counts the entries ever added to it, from 0 when it is created. So st has
--   added   "count gone": the entries ever added, and how many of them are missing, at least, once
--           no entry up to the cursor is left
--   run_id  of the server that counted. Another server may have loaded a file without the count (of
--           Redis 6.2, or an older copy): its smaller count proves nothing.

-- Return whether no entry up to the cursor is left.
local function has_none_upto(info, cursor)
  local first = info['first-entry']
  return not first or is_before(cursor, first[1])
end

-- Return whether the stream was recreated since st counted it.
local function is_recreated(info, cursor, counted)
  local now, held, gone = info['entries-added'], string.match(counted or '', '^(%d+) (%d+)$')
  if not now or not held then return false end
  if now < tonumber(held) then return true end
  return has_none_upto(info, cursor) and now - info['length'] < tonumber(gone)
end

-- Return the field `added` of st for a stream that still has `kept` entries up to the cursor.
local function counted(info, kept)
  local added = info['entries-added']
  return string.format('%.0f %.0f', added, added - info['length'] + kept)
end

local function run_id() return string.match(call('INFO', 'server'), 'run_id:(%x+)') end

-- Returns nil, or
--   TYPE, key, type   the input holds another type
--   GONE, cursor      the input ends before the cursor: it was deleted, or recreated
--   INPUT_RECREATED, cursor
-- A cursor that is no ID passes: the reader of st reports it.
local function input_refused(st, input)
  local held = call('HMGET', st, 'cursor', 'added', 'run_id')
  local cursor, kind = held[1], type_of(input)
  if not string.match(cursor or '', '^%d+-%d+$') then return nil end
  if kind ~= 'stream' and kind ~= 'none' then return {'TYPE', input, kind} end
  if kind == 'none' then return cursor ~= '0-0' and {'GONE', cursor} or nil end
  local info = info_of(input)
  if is_before(info['last-generated-id'], cursor) then return {'GONE', cursor} end
  if is_recreated(info, cursor, held[2]) and held[3] == run_id() then
    return {'INPUT_RECREATED', cursor}
  end
end

-- Store the run_id. Count the input if it was not counted, or if the count is not valid for this run
-- of the server. Call input_refused first.
-- Returns 1 if an earlier loss would have gone unnoticed; else 0.
local function count_input(st, input)
  local held, run = call('HMGET', st, 'cursor', 'added', 'run_id'), run_id()
  local cursor = held[1]
  if held[3] ~= run then call('HSET', st, 'run_id', run) end
  if type_of(input) ~= 'stream' or not string.match(cursor or '', '^%d+-%d+$') then return 0 end
  local info = info_of(input)
  if not info['entries-added'] then return 0 end
  local recreated = is_recreated(info, cursor, held[2])
  if held[2] and not recreated then return 0 end
  call('HSET', st, 'added', counted(info, has_none_upto(info, cursor) and 0 or 1))
  if recreated then call('HSET', st, 'gone', '- ' .. info['max-deleted-entry-id']) end
  return (recreated or cursor ~= '0-0') and 1 or 0
end

