-- start.lua: start the first startable turn of a harness: lane, slot and breaker in one step or not at all.
-- KEYS: none.  ARGV[1]: now, nonce, harness, token, slots {harness: limit}, order_wait_ms.
-- Reply: ['none'] or ['ok', id, 'first' | 'again', 'probe' | '', {record's fields and values}].
-- Asked again with the same token it answers the same; asked for too long ago: none.
if not in_time() then return {'none'} end
local h = A.harness
local under_way = tonumber(call('HGET', P .. 'wakes', h) or 0)
local mine = call('GET', P .. 'started:' .. A.token)
if mine then return {'ok', mine, 'again', '', call('HGETALL', rec(mine))} end
if under_way > 0 then call('HINCRBY', P .. 'wakes', h, -1) end
local free, testing = free_slots(h)
if free < 1 then return {'none'} end
local set = P .. 'at:dispatch:' .. h
for _, id in ipairs(call('ZRANGE', set, 0, 15)) do
  local r = load(id)
  local l = r and r.place == 'dispatch' and call('HMGET', lane_key(r.lane), 'current', 'queued')
  if l and ((not l[1] and l[2] == id) or l[1] == id) then
    local lk, first = lane_key(r.lane), not l[1]
    call('ZADD', P .. 'at:running:' .. h, now, id)
    call('HSET', lk, 'current', id, 'state', 'running', 'asker', call('HGET', rec(id), 'sender') or '')
    call('HDEL', lk, 'queued')
    call('ZREM', lk .. ':ready', id)
    call('HSET', rec(id), 'place', 'running', 'step', tonumber(r.step) + 1, 'by', nonce)
    if r.turn then
      call('HDEL', rec(id), 'turn')
      waiting(r, -1)
    end
    if testing then call('HSET', P .. 'breaker:' .. h, 'probe', id) end
    call('HSET', P .. 'held', 'turn:' .. id, A.token .. '|0|' .. id)
    call('SET', P .. 'started:' .. A.token, id, 'PX', 120000)
    call('ZREM', set, id)
    wake_dispatch(h)
    return {'ok', id, first and 'first' or 'again', testing and 'probe' or '', call('HGETALL', rec(id))}
  end
  call('ZREM', set, id)
  if r and r.place == 'dispatch' then
    call('HSET', rec(id), 'place', 'parked:lane', 'step', tonumber(r.step) + 1)
    call('ZADD', P .. 'at:parked:lane', now, id)
    lane_wake(r.lane)
  end
end
wake_dispatch(h)
return {'none'}
