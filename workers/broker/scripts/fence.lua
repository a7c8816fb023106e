-- Take a feed over: from now on every earlier writer is refused.
--
-- KEYS  1 st    hash    position of the feed
--       2 in    stream  examples
--       3 anew  string  what a reset left: a later loss of the feed is one again
--
-- ARGV  1 writer  for people
--       2 reads   "1" where the feed answers what is in `in`, "0" where it answers other feeds
--       then names and values of the fields of a new feed; none where the feed must exist
--
-- Returns {"OK", uncounted, name, value ...}: all fields of st, and 1 where the input is counted
-- from here on only; or {code, detail ...}
--   LOST  there is no st, and the feed must exist
--   what input.lua refuses
--
-- HSET and PERSIST are used here so that a missing permission shows before the first commit does,
-- not in the middle of it. An epoch that cannot grow is left as it is, for the reader of the fields
-- to say so.

local is_new = call('EXISTS', KEYS[1]) == 0
if is_new and #A == 2 then return {'LOST'} end
if not is_new and A[2] == '1' then
  local refused = input_refused(KEYS[1], KEYS[2])
  if refused then return refused end
end

-- What is gone of the input when a feed begins is not missed later: see commit.lua.
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
  if A[2] == '1' then uncounted = count_input(KEYS[1], KEYS[2]) end
elseif not (string.find(epoch['err'], 'integer') or string.find(epoch['err'], 'overflow')) then
  return epoch
end
call('PERSIST', KEYS[1])
call('DEL', KEYS[3])
return {'OK', uncounted, unpack(call('HGETALL', KEYS[1]))}
