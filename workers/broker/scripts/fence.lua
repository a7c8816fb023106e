-- Take over a feed: commits of earlier writers are refused from now on.
--
-- KEYS  1 st    hash    position of the feed
--       2 in    stream  examples
--       3 anew  string  mark of a reset; deleted, so that a later loss of the state is noticed
--
-- ARGV  1 writer  name of the worker, for people
--       2 kept    retention of this worker, JSON; "" keeps the stored one
--       then names and values of the fields of a new feed; none if the feed must exist
--
-- Returns {"OK", uncounted, name, value ...}: all fields of st, and 1 if the input was not counted
-- until now; or {code, detail ...}
--   LOST  there is no st, and the feed must exist
--   or a refusal of input.lua
--
-- HSET and PERSIST run here so that a missing permission is found before the first commit. An epoch
-- that is no integer, or the largest one, is left as it is: the reader of the fields reports it.

local is_new = call('EXISTS', KEYS[1]) == 0
if is_new and #A == 2 then return {'LOST'} end
if not is_new then
  local refused = input_refused(KEYS[1], KEYS[2])
  if refused then return refused end
end

-- Entries that are gone when a feed is created are not missed later: see commit.lua.
if is_new then
  call('HSET', KEYS[1], unpack(A, 3))
  local info = type_of(KEYS[2]) == 'stream' and info_of(KEYS[2])
  if not info then
    call('HSET', KEYS[1], 'gone', '0 0-0')
  elseif info['entries-added'] then
    call('HSET', KEYS[1], 'gone', string.format('%.0f %s',
      info['entries-added'] - info['length'], info['max-deleted-entry-id']))
  end
end

local epoch, uncounted = pcall_('HINCRBY', KEYS[1], 'epoch', 1), 0
if type(epoch) == 'number' then
  call('HSET', KEYS[1], 'writer', A[1])
  if A[2] ~= '' then call('HSET', KEYS[1], 'retention', A[2]) end
  uncounted = count_input(KEYS[1], KEYS[2])
elseif not (string.find(epoch['err'], 'integer') or string.find(epoch['err'], 'overflow')) then
  return epoch
end
call('PERSIST', KEYS[1])
call('DEL', KEYS[3])
return {'OK', uncounted, unpack(call('HGETALL', KEYS[1]))}
