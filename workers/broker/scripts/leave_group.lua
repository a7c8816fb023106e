-- Take a consumer out of a group, unless entries are pending under its name: they would be lost.
--
-- KEYS  1 stream
--
-- ARGV  1 group, 2 consumer
--
-- Returns 1 where it is gone; 0 where it has entries, or there is no such group.

local pending = redis.pcall('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2])
if pending.err then
  if string.find(pending.err, 'NOGROUP', 1, true) then return 0 end
  return pending
end
if #pending > 0 then return 0 end
redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
return 1
