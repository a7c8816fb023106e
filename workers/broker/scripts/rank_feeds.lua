-- Return which feeds have a state, and which of the others have input.
--
-- KEYS  1, 3 ..  st  hash    position of a feed
--       2, 4 ..  in  stream  its examples; on a cluster, all keys are in one slot
--
-- Returns a number for each feed: 0 if it has `st`, else 1 if it has `in`, else 2.

local ranks = {}
for i = 1, #KEYS, 2 do
  if redis.call('EXISTS', KEYS[i]) == 1 then
    ranks[#ranks + 1] = 0
  else
    ranks[#ranks + 1] = 2 - redis.call('EXISTS', KEYS[i + 1])
  end
end
return ranks
