-- reopen.lua: an operator's replay: one dead id goes back to where it died, or to admission.
-- KEYS: none.  ARGV[1]: now, nonce, id, to, reset [parts], letter, index, keep_ms, lane_max, slots, order_wait_ms.
-- Reply: 'ok', or why not: gone (what it needs is not kept), alive (not dead), full (its lane has lane_max turns
--   waiting), busy (the guest has another turn).
local r = load(A.id)
if not r then return 'gone' end
if r.by == nonce then return 'ok' end -- the same call again
if not in_time() then return 'alive' end
local was = call('HMGET', rec(A.id), 'disposition', 'env', 'parts')
if r.place ~= 'ended' or was[1] ~= 'dead' then return 'alive' end
if not was[2] or A.to == 'delivery' and not was[3] then return 'gone' end
local place = A.to
local turn = place == 'dispatch' or place == 'quotes'
if turn and turns_waiting(lane_of(r.lane)) >= A.lane_max then return 'full' end
if turn and r.guest then
  if (call('HGET', P .. 'guests', r.guest) or A.id) ~= A.id then return 'busy' end
  call('HSET', P .. 'guests', r.guest, A.id)
end
r.ticket = call('INCR', P .. 'ticket')
local fields = {'step', tonumber(r.step) + 1, 'by', nonce, 'ticket', r.ticket, 'replayed', 1}
local gone = {'attempt', 'takeovers', 'disposition', 'reason', 'ended_at', 'cancel', 'url', 'pending', 'asked'}
count(r.account, 1)
if place == 'dispatch' then
  place = 'parked:lane'
  call('ZADD', lane_key(r.lane) .. ':ready', r.ticket, A.id)
  -- What of its lane stands in the partition came before it, and would not be waited for: nothing there is passed else.
  for _, stage in ipairs({'admission', 'engagement'}) do
    for _, id in ipairs(call('ZRANGE', P .. 'at:' .. stage .. ':' .. r.part, 0, 999)) do
      local other = load(id)
      if other and other.lane == r.lane then
        call('ZADD', lane_key(r.lane) .. ':pending', other.ticket, id)
        call('HSET', rec(id), 'pending', 1)
      end
    end
  end
  fields[#fields + 1] = 'ready_at'; fields[#fields + 1] = now
elseif place == 'delivery' then
  for _, part in ipairs(A.reset) do call('HDEL', P .. 'ledger:' .. r.out, part) end
else
  gone[#gone + 1] = 'ready_at'
end
call('HDEL', rec(A.id), unpack(gone))
if place == 'quotes' or place == 'judge' then
  call('ZADD', lane_key(r.lane) .. ':pending', r.ticket, A.id)
  fields[#fields + 1] = 'pending'; fields[#fields + 1] = 1
end
fields[#fields + 1] = 'place'; fields[#fields + 1] = place
call('HSET', rec(A.id), unpack(fields))
enter(A.id, r, place)
call('HINCRBY', A.letter, 'replays', 1)
call('HSET', A.letter, 'status', 'replaying')
call('PEXPIRE', A.letter, A.keep_ms)
call('ZREM', A.index, A.id)
flush_depth()
wake(A.id, r, place)
if place == 'parked:lane' then lane_look(r.lane) end
return 'ok'
