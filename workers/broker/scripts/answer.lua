-- Answer requests, each once: only the first scorer that calls this for a request answers it.
--
-- KEYS  1 req  stream  requests
--       2 ..   list    the answer to each request: one element
--
-- ARGV  1 group         of the scorers
--       2 measured_at   milliseconds by the clock of Redis: when the staleness was measured
--       3 max_age_ms    milliseconds after that, beyond which nothing is written
--       4 keep_seconds  expiry of an answer
--       then for each request: ID of its entry, answer
--
-- Returns {OK, answers written}; {LATE} if the staleness must be measured again; {GONE} if the group
-- or the stream was deleted: the remaining requests are then delivered again.
--
-- A request that is no longer pending was claimed and answered by another scorer. If the key of an
-- answer exists, the request was sent twice. Every check comes before the first write. The first
-- write is an RPUSH, which Redis refuses when out of memory: all requests then stay pending.

local now = redis.call('TIME')
if tonumber(now[1]) * 1000 + tonumber(now[2]) / 1000 > tonumber(ARGV[2]) + tonumber(ARGV[3]) then
  return {'LATE'}
end
local req, group, entries = KEYS[1], ARGV[1], {}
for i = 5, #ARGV, 2 do entries[#entries + 1] = ARGV[i] end

-- Requests of one read are adjacent: one command finds which of them are pending.
local pending = {}
local found = redis.pcall('XPENDING', req, group, entries[1], entries[#entries], #entries)
if found.err then
  if string.find(found.err, 'NOGROUP', 1, true) then return {'GONE'} end
  return found
end
for _, row in ipairs(found) do pending[row[1]] = true end
local none_exists = redis.call('EXISTS', unpack(KEYS, 2)) == 0

local new, done = {}, {}
local taken = {}
for i, entry in ipairs(entries) do
  local key = KEYS[i + 1]
  if pending[entry] or #redis.call('XPENDING', req, group, entry, entry, 1) > 0 then
    done[#done + 1] = entry
    if not taken[key] and (none_exists or redis.call('EXISTS', key) == 0) then
      taken[key] = true
      new[#new + 1] = i
    end
  end
end
for _, i in ipairs(new) do
  redis.call('RPUSH', KEYS[i + 1], ARGV[4 + 2 * i])
  redis.call('EXPIRE', KEYS[i + 1], ARGV[4])
end
if #done > 0 then
  redis.call('XACK', req, group, unpack(done))
  redis.call('XDEL', req, unpack(done))
end
return {'OK', #new}
