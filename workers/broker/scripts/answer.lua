-- Answer requests, each once: who comes first answers, and nobody else does.
--
-- KEYS  1 req  stream  requests
--       2 ..   list    the answer to each request: one element
--
-- ARGV  1 group    of the scorers
--       2 since    milliseconds by the clock of Redis, when the staleness of the state was measured
--       3 most     milliseconds that this may be ago
--       4 keep     seconds that an answer is kept
--       then of each request: ID of its entry, answer
--
-- Returns {OK, answers written}, or {LATE} where the staleness has to be measured again.
--
-- A request that is not pending was answered, by a scorer that took it over. One whose key has an
-- answer was sent twice. The first write is an RPUSH, which is refused where Redis has no memory
-- left; then all requests stay pending.

local now = redis.call('TIME')
if tonumber(now[1]) * 1000 + tonumber(now[2]) / 1000 > tonumber(ARGV[2]) + tonumber(ARGV[3]) then
  return {'LATE'}
end
local first, written = 5, 0
for i = 2, #KEYS do
  local entry, answer = ARGV[first + 2 * (i - 2)], ARGV[first + 2 * (i - 2) + 1]
  if #redis.call('XPENDING', KEYS[1], ARGV[1], entry, entry, 1) > 0 then
    if redis.call('EXISTS', KEYS[i]) == 0 then
      redis.call('RPUSH', KEYS[i], answer)
      redis.call('EXPIRE', KEYS[i], ARGV[4])
      written = written + 1
    end
    redis.call('XACK', KEYS[1], ARGV[1], entry)
    redis.call('XDEL', KEYS[1], entry)
  end
end
return {'OK', written}
