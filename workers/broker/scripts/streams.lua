-- Functions of the scripts that write st; loaded before each of them.
--
-- A check returns nil, or the reply of the script, {code, detail ...}:
--   LOST                   there is no st: Redis was flushed, or the feed deleted
--   FENCED, epoch          the epoch in st is not the writer's
--   ALREADY, seq, digest   this batch is already committed: the reply was lost
--   CURSOR, cursor         st has another cursor
--   TYPE, key, type        a key holds another type
--   OUTPUT, key, id        a stream already holds this ID or a later one
--
-- Nothing in Redis rolls back. So every check comes before the first write; and the first write is
-- an XADD, which Redis refuses at out-of-memory, and with it the whole script.

local call, pcall_, A = redis.call, redis.pcall, ARGV

local function type_of(key) return call('TYPE', key)['ok'] end

-- Parts of IDs go up to 2^64 - 1, too large for Lua's doubles. So canonical decimals are compared by
-- length, then digit by digit.
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

local function pairs_of(flat)
  local found = {}
  for i = 1, #flat, 2 do found[flat[i]] = flat[i + 1] end
  return found
end

local function info_of(key) return pairs_of(call('XINFO', 'STREAM', key)) end

-- If a reply is an error, return the refusal for a key of another type, or the error itself if it has
-- another reason. So only errors cost a TYPE.
local function failed(reply, key, expected)
  if not reply['err'] then return nil end
  local kind = type_of(key)
  return kind ~= 'none' and kind ~= expected and {'TYPE', key, kind} or reply
end

-- Check the epoch, and that the cursor is at the start of this batch, `before`. `after` is the end of
-- the batch; it equals `before` if there is no batch.
-- Returns a refusal or nil, and further fields of st: seq, gone, added.
local function position_refused(st, epoch, before, after)
  local held = pcall_('HMGET', st, 'epoch', 'cursor', 'seq', 'digest', 'gone', 'added')
  local refused = failed(held, st, 'hash')
  if refused then return refused end
  if not held[1] and type_of(st) == 'none' then return {'LOST'} end
  if held[1] ~= epoch then return {'FENCED', held[1] or ''} end
  if after ~= before and held[2] == after then return {'ALREADY', held[3] or '', held[4] or ''} end
  if held[2] ~= before then return {'CURSOR', held[2] or ''} end
  return nil, {seq = held[3], gone = held[5], added = held[6]}
end

-- Check that `count` entries can be added to a stream, the first of them under the ID `first`.
local function stream_refused(key, count, first)
  local kind = type_of(key)
  if kind ~= 'stream' and kind ~= 'none' then return {'TYPE', key, kind} end
  if kind == 'none' or count == 0 then return nil end
  -- The last generated ID, since the newest entry may be deleted: Redis still refuses its ID.
  if not is_before(info_of(key)['last-generated-id'], first) then
    return {'OUTPUT', key, first}
  end
end

-- Add `count` payloads: id, payload, id, payload, ... from argument `first`.
local function add_payloads(key, count, first)
  for i = first, first + 2 * count - 1, 2 do call('XADD', key, A[i], 'p', A[i + 1]) end
end

-- Add `count` dead letters: id, then names and values of four fields, ... from argument `first`.
local function add_dead_letters(key, count, first)
  for i = first, first + 9 * count - 1, 9 do call('XADD', key, unpack(A, i, i + 8)) end
end

-- Trim a stream that got entries, approximately: to `keep` entries, '0' keeps all; and the entries
-- before the ID `from`, '' trims none. This follows the commit: errors must not look like a refusal.
local function trim(key, count, keep, from)
  if count == 0 then return end
  if keep ~= '0' then pcall_('XTRIM', key, 'MAXLEN', '~', keep) end
  if from ~= '' then pcall_('XTRIM', key, 'MINID', '~', from, 'LIMIT', 0) end
end

-- Set fields of the hash of ids: id, value, id, value, ... from argument `first` to the last one; an
-- empty value removes the id. This follows the commit: errors must not look like a refusal.
local function set_ids(key, first)
  local at_once = 2000
  for from = first, #A, at_once do
    local set, gone = {}, {}
    for i = from, math.min(from + at_once, #A + 1) - 1, 2 do
      if A[i + 1] == '' then gone[#gone + 1] = A[i] else set[#set + 1], set[#set + 2] = A[i], A[i + 1] end
    end
    if #gone > 0 then pcall_('HDEL', key, unpack(gone)) end
    if #set > 0 then pcall_('HSET', key, unpack(set)) end
  end
end
