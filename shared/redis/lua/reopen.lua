-- reopen.lua: an operator's replay: one dead id goes back to where it died, or to admission.
-- KEYS: none.  ARGV[1]: now, nonce, id, to, out (the outbound id, for delivery), reset [parts], letter, index, keep_ms,
--   lane_max, slots, order_wait_ms.  Reply: 'ok', or why not: gone (what it needs is not kept), alive (not dead), full
--   (its lane has lane_max turns waiting), busy (the guest has another turn).
local r = load(A.id)
if not r then return 'gone' end
if r.by == nonce then return 'ok' end -- the same call again
if not in_time() then return 'alive' end
local disposition = call('HGET', rec(A.id), 'disposition')
if r.place ~= 'ended' or disposition ~= 'dead' then return 'alive' end
if call('HEXISTS', rec(A.id), 'env') == 0 then return 'gone' end
if A.to == 'delivery' and call('HEXISTS', rec(A.out), 'parts') == 0 then return 'gone' end
local place = A.to
local turn = place == 'dispatch' or place == 'quotes'
if turn and tonumber(call('HGET', lane_key(r.lane), 'waiting') or 0) >= A.lane_max then return 'full' end
if turn and r.guest then
  if (call('HGET', P .. 'guests', r.guest) or A.id) ~= A.id then return 'busy' end
  call('HSET', P .. 'guests', r.guest, A.id)
end
r.ticket = call('INCR', P .. 'ticket:' .. r.part)
local fields = {'step', tonumber(r.step) + 1, 'by', nonce, 'ticket', r.ticket, 'replayed', 1}
call('HDEL', rec(A.id), 'attempt', 'takeovers', 'disposition', 'reason', 'ended_at', 'cancel', 'url')
count(r.account, 1)
if place == 'dispatch' then
  place = 'parked:lane'
  call('ZADD', lane_key(r.lane) .. ':ready', r.ticket, A.id)
  fields[#fields + 1] = 'ready_at'; fields[#fields + 1] = now
elseif place == 'delivery' then
  place = 'parked:outbound'
else
  if r.ready_at then call('HDEL', rec(A.id), 'ready_at') end
  call('ZADD', lane_key(r.lane) .. ':pending', r.ticket, A.id)
end
if turn then
  fields[#fields + 1] = 'turn'; fields[#fields + 1] = '1'
  waiting(r, 1)
end
fields[#fields + 1] = 'place'; fields[#fields + 1] = place
call('HSET', rec(A.id), unpack(fields))
enter(A.id, r, place)
if A.to == 'delivery' then
  for _, part in ipairs(A.reset) do call('HDEL', P .. 'ledger:' .. A.out, part) end
  local o = load(A.out)
  call('HDEL', rec(A.out), 'attempt', 'takeovers', 'disposition', 'reason', 'ended_at')
  call('HSET', rec(A.out), 'place', 'delivery', 'step', tonumber(o.step) + 1, 'by', nonce)
  call('ZADD', P .. 'at:delivery', now, A.out)
  push('delivery', A.out)
end
call('HINCRBY', A.letter, 'replays', 1)
call('HSET', A.letter, 'status', 'replaying')
call('PEXPIRE', A.letter, A.keep_ms)
call('ZREM', A.index, A.id)
flush_depth()
wake(A.id, r, place)
if place == 'parked:lane' then lane_wake(r.lane) end
return 'ok'
