-- restore.lua: the slow scan's mending of one record: an id that is in no place goes back to the one it names.
-- KEYS: none.  ARGV[1]: now, nonce, id, slots, order_wait_ms.  Reply: 1 mended, 0 all was well.
local r = load(A.id)
if not r or not r.place or r.place == 'ended' then return 0 end
local mended = 0
if not call('ZSCORE', at(r.place, r), A.id) then
  enter(A.id, r, r.place)
  wake(A.id, r, r.place)
  mended = 1
end
if r.place == 'running' and call('HSETNX', P .. 'held', 'turn:' .. A.id, 'nobody|0|' .. A.id) == 1 then mended = 1 end
if r.place == 'parked:lane' then lane_look(r.lane) end
return mended
