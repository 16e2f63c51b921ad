-- move.lua: the one way from a place to another.
-- KEYS: none.  ARGV[1]: now, nonce, holder, token ('' where none is needed), release, order_wait_ms, slots, keep_ms,
--   short_ms, frozen_ms, moves [{id, step, scopes [..], guards [[kind, ..]], to, score, fields {..}, drop [..],
--   effects [[command, ..]], creates [{id, score, fields}], lane_state, end [disposition, reason, stage], breaker {..},
--   stop, timers [[ms, kind, name, id]]}].
-- Reply: ['lost'] the claim is not held any more, or one word a move: ok, stale (the record went on, or an earlier
--   message of its scope was not applied), guard:N (condition N does not hold), failed:TEXT. What is not ok did nothing.
-- The same call again answers the same, also after it gave its claim back.
local lost = false
if A.holder ~= '' then
  local held = call('HGET', P .. 'held', A.holder)
  if not held or string.match(held, '^[^|]+') ~= A.token then
    lost = true
    local again = false
    for _, m in ipairs(A.moves) do again = again or call('HGET', rec(m.id), 'by') == nonce end
    if not again then return {'lost'} end
  end
end

local GUARDS = {
  dup = function(key, id) local v = call('GET', key); return not v or string.match(v, '^[^|]+') == id end,
  free = function(key, field, id) local v = call('HGET', key, field); return not v or v == id end,
  below = function(key, low, high, most) return call('ZCOUNT', key, low, high) < tonumber(most) end,
  room = function(lane, most) return tonumber(call('HGET', lane_key(lane), 'waiting') or 0) < tonumber(most) end,
  current = function(lane, id, state)
    local l = call('HMGET', lane_key(lane), 'current', 'state')
    return (l[1] or '') == id and (l[2] or '') == state
  end,
}

-- /stop: a running turn is marked, one that waits ends here and now.
local function stop(lane)
  local id = call('HGET', lane_key(lane), 'current')
  local r = id and load(id)
  if not r then return end
  if r.place == 'running' then
    call('HSET', rec(id), 'cancel', 1)
  else
    finish(id, r, 'cancelled', 'stop', 'dispatch')
  end
end

local function breaker(b)
  local key = P .. 'breaker:' .. b.harness
  if b.event == 'ok' then
    -- What began before it opened says nothing about now: only the probe closes an open one.
    if not b.probe and call('HEXISTS', key, 'open_until') == 1 then return end
    if call('DEL', key) == 1 then wake_dispatch(b.harness) end
    return
  end
  local fails = call('HINCRBY', key, 'fails', 1)
  if fails >= b.failures or b.probe then
    call('HSET', key, 'open_until', now + b.open_ms)
    call('HDEL', key, 'probe')
    timer(now + b.open_ms, 'breaker', b.harness, '')
  end
end

-- Places that are one stage further: what got there has not killed its workers.
local PROGRESS = {engagement = true, quotes = true, ['parked:lane'] = true, ['parked:outbound'] = true}

local function apply(m, r)
  local old = at(r.place, r)
  local fields = {}
  for k, v in pairs(m.fields or {}) do
    fields[#fields + 1] = k
    fields[#fields + 1] = v
    r[k] = v
  end
  if m.to then
    enter(m.id, r, m.to, m.score)
    if old ~= at(m.to, r) then m.entered = at(m.to, r) end
  end
  for _, e in ipairs(m.effects or {}) do call(unpack(e)) end
  for _, c in ipairs(m.creates or {}) do
    if call('EXISTS', rec(c.id)) == 0 then
      local f = {'place', 'delivery', 'step', 1, 'kind', 'out', 'by', nonce, 'moved', now}
      for k, v in pairs(c.fields) do f[#f + 1] = k; f[#f + 1] = v end
      call('HSET', rec(c.id), unpack(f))
      call('ZADD', P .. 'at:delivery', c.score or now, c.id)
      push('delivery', c.id)
    end
  end
  if m.drop and #m.drop > 0 then call('HDEL', rec(m.id), unpack(m.drop)) end
  for _, t in ipairs(m.timers or {}) do timer(unpack(t)) end
  if m.fields and m.fields.turn then waiting(r, 1) end
  if m.lane_state then call('HSET', lane_key(r.lane), 'state', m.lane_state) end
  if m.stop then stop(r.lane) end
  if m['end'] then
    finish(m.id, r, m['end'][1], m['end'][2], m['end'][3], fields)
  else
    local freed = r.place == 'running' and m.to ~= 'running' and r.harness
    call('HSET', rec(m.id), 'place', m.to, 'step', tonumber(r.step) + 1, 'by', nonce, 'moved', now, unpack(fields))
    if m.fields and m.fields.ready_at then
      call('ZADD', lane_key(r.lane) .. ':ready', r.ticket, m.id)
      call('ZREM', lane_key(r.lane) .. ':pending', m.id)
    end
    if old ~= at(m.to, r) then call('ZREM', old, m.id) end
    if r.takeovers and PROGRESS[m.to] then call('HDEL', rec(m.id), 'takeovers') end
    if m.breaker then breaker(m.breaker); m.breaker = nil end
    wake(m.id, r, m.to)
    if freed then wake_dispatch(freed) end
    if m.to == 'parked:lane' then lane_wake(r.lane) end
  end
  if m.breaker then breaker(m.breaker) end
end

local out, blocked = {}, {}
for i, m in ipairs(A.moves) do
  local r, verdict = load(m.id), nil
  for _, s in ipairs(m.scopes or {}) do if blocked[s] then verdict = 'stale' end end
  if not verdict then
    if not r then verdict = 'stale'
    elseif lost or tonumber(r.step) ~= m.step then verdict = (r.by == nonce) and 'ok' or 'stale'
    else
      for n, g in ipairs(m.guards or {}) do
        if not GUARDS[g[1]](unpack(g, 2)) then verdict = 'guard:' .. n; break end
      end
    end
    if not verdict then
      local fine, why = pcall(apply, m, r)
      if fine then verdict = 'ok'
      else
        verdict = 'failed:' .. tostring(type(why) == 'table' and why.err or why)
        if m.entered then call('ZREM', m.entered, m.id) end
      end
    end
  end
  if verdict ~= 'ok' then for _, s in ipairs(m.scopes or {}) do blocked[s] = true end end
  out[i] = verdict
end
flush_depth()
if A.release and A.holder ~= '' and not lost then call('HDEL', P .. 'held', A.holder) end
return out
