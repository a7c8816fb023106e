-- Replace a stream by a copy of its entries; keep its counts and consumer groups.
--
-- XDEL only marks an entry as deleted: its bytes stay in memory, and in the files that Redis saves. A
-- copy without the entry does not contain them.
--
-- KEYS  1 stream
--       2 copy    without some entries; it does not exist if no entry is left
--
-- ARGV  1 last    ID of the last entry that was copied, or omitted on purpose
--
-- Returns {code}: OK, or AGAIN if the stream has later entries

if #call('XRANGE', KEYS[1], '(' .. A[1], '+', 'COUNT', 1) > 0 then return {'AGAIN'} end

local info = info_of(KEYS[1])
if type_of(KEYS[2]) == 'none' then
  call('XGROUP', 'CREATE', KEYS[2], 'none', '0', 'MKSTREAM')
  call('XGROUP', 'DESTROY', KEYS[2], 'none')
end
local last = info['last-generated-id']
if info['entries-added'] then
  call('XSETID', KEYS[2], last, 'ENTRIESADDED', info['entries-added'],
    'MAXDELETEDID', info['max-deleted-entry-id'])
else
  call('XSETID', KEYS[2], last)
end

for _, flat in ipairs(call('XINFO', 'GROUPS', KEYS[1])) do
  local group = pairs_of(flat)
  call('XGROUP', 'CREATE', KEYS[2], group['name'], group['last-delivered-id'])
  for _, of_group in ipairs(call('XINFO', 'CONSUMERS', KEYS[1], group['name'])) do
    call('XGROUP', 'CREATECONSUMER', KEYS[2], group['name'], pairs_of(of_group)['name'])
  end
  local from = '-'
  while true do
    local pending = call('XPENDING', KEYS[1], group['name'], from, '+', 1000)
    for _, each in ipairs(pending) do
      if #call('XRANGE', KEYS[2], each[1], each[1]) == 1 then
        call('XCLAIM', KEYS[2], group['name'], each[2], '0', each[1], 'IDLE', each[3],
          'RETRYCOUNT', each[4], 'FORCE', 'JUSTID')
      end
    end
    if #pending < 1000 then break end
    from = '(' .. pending[#pending][1]
  end
end

call('RENAME', KEYS[2], KEYS[1])
call('PERSIST', KEYS[1])
return {'OK'}
