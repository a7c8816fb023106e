-- What the scripts that look after the input share; it stands after streams.lua.
--
-- A stream that was deleted, or renamed, and made anew holds none of what was not answered yet.
-- From Redis 7 on a stream counts the entries it ever got, and starts at 0 when it is made. So st
-- keeps
--   added   "count gone": the entries that the stream ever got, and how many of them must be gone
--           from it at least once none up to the cursor is left
--   run_id  of the server that counted. Another one may have loaded a file that lacks the count
--           (of Redis 6.2, or an older copy): there a smaller count proves nothing.

-- Is no entry up to the cursor left?
local function has_none_upto(info, cursor)
  local first = info['first-entry']
  return not first or is_before(cursor, first[1])
end

-- Was the stream made anew since st counted it?
local function is_anew(info, cursor, counted)
  local now, held, gone = info['entries-added'], string.match(counted or '', '^(%d+) (%d+)$')
  if not now or not held then return false end
  if now < tonumber(held) then return true end
  return has_none_upto(info, cursor) and now - info['length'] < tonumber(gone)
end

-- The field `added` for a stream in which `kept` entries up to the cursor are known to be.
local function counted(info, kept)
  local added = info['entries-added']
  return string.format('%.0f %.0f', added, added - info['length'] + kept)
end

local function run_id() return string.match(call('INFO', 'server'), 'run_id:(%x+)') end

-- Returns nil, or
--   TYPE, key, type   the input holds another type
--   GONE, cursor      the input ends before the cursor: it is gone, or was made anew
--   ANEW, cursor      the input was made anew
-- A cursor that is no ID is left to the reader of st.
local function input_refused(st, input)
  local held = call('HMGET', st, 'cursor', 'added', 'run_id')
  local cursor, kind = held[1], type_of(input)
  if not string.match(cursor or '', '^%d+-%d+$') then return nil end
  if kind ~= 'stream' and kind ~= 'none' then return {'TYPE', input, kind} end
  if kind == 'none' then return cursor ~= '0-0' and {'GONE', cursor} or nil end
  local info = info_of(input)
  if is_before(info['last-generated-id'], cursor) then return {'GONE', cursor} end
  if is_anew(info, cursor, held[2]) and held[3] == run_id() then return {'ANEW', cursor} end
end

-- Note under which run of the server the input is counted; count it where that was not done, or
-- where the count of before does not hold under this run. Comes after input_refused.
-- Returns 1 where something could have been lost before, and could not be seen; else 0.
local function count_input(st, input)
  local held, run = call('HMGET', st, 'cursor', 'added', 'run_id'), run_id()
  local cursor = held[1]
  if held[3] ~= run then call('HSET', st, 'run_id', run) end
  if type_of(input) ~= 'stream' or not string.match(cursor or '', '^%d+-%d+$') then return 0 end
  local info = info_of(input)
  if not info['entries-added'] then return 0 end
  local anew = is_anew(info, cursor, held[2])
  if held[2] and not anew then return 0 end
  call('HSET', st, 'added', counted(info, has_none_upto(info, cursor) and 0 or 1))
  if anew then call('HSET', st, 'gone', '- ' .. info['max-deleted-entry-id']) end
  return (anew or cursor ~= '0-0') and 1 or 0
end

