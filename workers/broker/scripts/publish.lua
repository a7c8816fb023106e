-- Make a state, whose parts are already stored, the newest one.
--
-- KEYS  1 st    hash    position of the feed
--       2 pub   hash    which published state is the newest
--       3 ..    string  the parts of the new state
--         ..    string  the parts of the previous state, which a gateway may be reading
--
-- ARGV  1 epoch   of the writer
--       2 cursor  of the state
--       3 parts   of the new state
--       4 seconds after which the previous state expires
--       then names and values of the fields of pub
--
-- Returns 1; or 0 if nothing is published, because a newer writer owns the feed, its cursor is another
-- one (the last commit was refused, or another one followed), or a part expired.

local parts = tonumber(ARGV[3])
local held = redis.call('HMGET', KEYS[1], 'epoch', 'cursor', 'config_hash')
if held[1] ~= ARGV[1] or held[2] ~= ARGV[2] then return 0 end
for i = 3, 2 + parts do
  if redis.call('EXISTS', KEYS[i]) == 0 then return 0 end
end
local now = redis.call('TIME')
local at = string.format('%d', tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000))
redis.call('HSET', KEYS[2], 'config_hash', held[3], 'at', at, unpack(ARGV, 5))
for i = 3, 2 + parts do redis.call('PERSIST', KEYS[i]) end
for i = 3 + parts, #KEYS do redis.call('EXPIRE', KEYS[i], ARGV[4]) end
return 1
