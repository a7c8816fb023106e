-- Remove a consumer from a group, unless it has pending entries, which would be lost.
--
-- KEYS  1 stream
--
-- ARGV  1 group, 2 consumer
--
-- Returns 1 if it was removed; 0 if it has pending entries, or the group does not exist.

local pending = redis.pcall('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2])
if pending.err then
  if string.find(pending.err, 'NOGROUP', 1, true) then return 0 end
  return pending
end
if #pending > 0 then return 0 end
redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
return 1
