-- move.lua: the one way from a place to another.
-- KEYS: none.  ARGV[1]: now, nonce, holder, token ('' where none is needed), release, order_wait_ms, slots, keep_ms,
--   short_ms, frozen_ms, moves [{id, step, scopes [..], guards [[kind, ..]], claims [key, ..], claim, to, score,
--   fields {..}, drop [..], freeze [key, text], effects [[command, ..]], creates [{id, score, fields}], lane_state,
--   end [disposition, reason, stage], breaker {..}, stop, timers [[ms, kind, name, id]], result [out, part, token,
--   state, detail, busy]}], tidy [[command, ..]] (bounds to be kept, after everything), next: what the holder goes on
--   with when all is done: {stage, part, limit, after} its partition's next batch, or where there is none, with the token
--   `after`, the first one of the partition that the oldest wake-up names; {stage, token, ..} what the oldest wake-up of
--   its stage stands for (for dispatch with what `turn` holds in start.lua).
-- Reply: [verdicts, what claim, take or start would reply, or []]. Verdicts: ['lost'] the claim is not held any more, or one
--   word a move: ok, stale (the record went on, or an earlier message of its scope was not applied), guard:N (condition N
--   does not hold, 0: a key is claimed), failed:TEXT. What is not ok did nothing, but a result is a fact.
-- The same call again answers the same, also after it gave its claim back.
local lost = A.holder ~= '' and holder_of(call('HGET', P .. 'held', A.holder)) ~= A.token
for _, m in ipairs(A.moves) do
  if m.result then
    local out, part, token, state, detail, busy = unpack(m.result)
    call('ZREM', busy, A.holder)
    result(P .. 'ledger:' .. out, tostring(part), token, state, detail, not lost)
  end
end
if lost then
  local again = A.next and A.next.stage == 'dispatch' and call('EXISTS', P .. 'started:' .. A.next.token) == 1
  for _, m in ipairs(A.moves) do again = again or call('HGET', rec(m.id), 'by') == nonce end
  if not again then return {{'lost'}, {}} end
end

local GUARDS = {
  free = function(key, field, id) local v = call('HGET', key, field); return not v or v == id end,
  below = function(key, low, high, most) return call('ZCOUNT', key, low, high) < tonumber(most) end,
  room = function(lane, most, m)
    m.lane = lane_of(lane)
    return turns_waiting(m.lane) - (m.pending and 1 or 0) < tonumber(most) -- itself it does not wait for
  end,
  current = function(lane, id, state)
    local l = call('HMGET', lane_key(lane), 'current', 'state')
    return (l[1] or '') == id and (l[2] or '') == state
  end,
}

-- All keys of a message are claimed for it, or none: those that it has already are its own.
local function claim(m)
  local both = {}
  for _, key in ipairs(m.claims) do both[#both + 1] = key; both[#both + 1] = m.claim end
  if call('MSETNX', unpack(both)) == 1 then
    m.claimed = m.claims
    return true
  end
  local free = {}
  for i, v in ipairs(call('MGET', unpack(m.claims))) do
    if v and holder_of(v) ~= m.id then return false end
    if not v then free[#free + 1] = m.claims[i] end
  end
  for _, key in ipairs(free) do call('SET', key, m.claim) end
  m.claimed = free
  return true
end

-- What enters or leaves a partition's set in this call does so at its end, in one command a set: in between nobody else
-- can look.
local arriving, leaving = {}, {}
local function later(sets, key, ...)
  local set = sets[key] or {}
  for _, v in ipairs({...}) do set[#set + 1] = v end
  sets[key] = set
end
local function without(set, id)
  local rest = {}
  for i = 1, #set, 2 do
    if set[i + 1] ~= id then
      rest[#rest + 1] = set[i]
      rest[#rest + 1] = set[i + 1]
    end
  end
  return rest
end
local function leave(old, place, id)
  if partitioned(place) then later(leaving, old, id) else call('ZREM', old, id) end
end

-- /stop: a running turn is marked, one that waits ends here and now.
local function stop(lane)
  local l = call('HMGET', lane_key(lane), 'current', 'state')
  local r = l[1] and l[2] ~= 'queued' and load(l[1])
  if not r then return end
  if r.place == 'running' then
    call('HSET', rec(l[1]), 'cancel', 1)
  else
    finish(l[1], r, 'cancelled', 'stop', 'dispatch', {}, {}, leave)
  end
end

local function breaker(b)
  local key = P .. 'harness:' .. b.harness
  if b.event == 'ok' then
    local was = call('HMGET', key, 'fails', 'open_until')
    -- What began before it opened says nothing about now: only the probe closes an open one.
    if not (was[1] or was[2]) or (was[2] and not b.probe) then return end
    call('HDEL', key, 'fails', 'open_until', 'probe')
    return wake_dispatch(b.harness)
  end
  local fails = call('HINCRBY', key, 'fails', 1)
  if fails >= b.failures or b.probe then
    call('HSET', key, 'open_until', now + b.open_ms)
    call('HDEL', key, 'probe')
    timer(now + b.open_ms, 'breaker', b.harness, '')
  end
end

-- Places that are one stage further: what got there has not killed its workers.
local PROGRESS = {engagement = true, quotes = true, ['parked:lane'] = true, dispatch = true, delivery = true}

-- A turn that is ready: at once in dispatch where its lane is idle and nothing earlier can come, else behind the others.
local function ready_place(m, r)
  local l = m.lane or lane_of(r.lane)
  if r.pending then
    call('ZREM', lane_key(r.lane) .. ':pending', m.id)
    l.pending = l.pending - 1
  end
  if not l.current and l.ready == 0 and l.pending == 0 then
    call('HSET', lane_key(r.lane), 'current', m.id, 'state', 'queued')
    return 'dispatch'
  end
  call('ZADD', lane_key(r.lane) .. ':ready', r.ticket, m.id)
  return 'parked:lane'
end

local function apply(m, r)
  local old, from, fields = at(r.place, r), r.place, {}
  for k, v in pairs(m.fields or {}) do
    fields[#fields + 1] = k
    fields[#fields + 1] = v
    r[k] = v
  end
  if m.to and m.to ~= 'parked:lane' then
    if partitioned(m.to) then later(arriving, at(m.to, r), score_of(r, m.to, m.score), m.id)
    else enter(m.id, r, m.to, m.score) end
    if old ~= at(m.to, r) then m.entered = at(m.to, r) end
  end
  if m.freeze then call('SET', m.freeze[1], m.freeze[2], 'NX') end
  for _, e in ipairs(m.effects or {}) do call(unpack(e)) end
  for _, c in ipairs(m.creates or {}) do
    if call('EXISTS', rec(c.id)) == 0 then
      local f = {'place', 'delivery', 'step', 1, 'kind', 'out', 'by', nonce, 'moved', now, 'out', c.id}
      for k, v in pairs(c.fields) do f[#f + 1] = k; f[#f + 1] = v end
      call('HSET', rec(c.id), unpack(f))
      call('ZADD', P .. 'at:delivery', c.score or now, c.id)
      push('delivery', c.id)
    end
  end
  for _, t in ipairs(m.timers or {}) do timer(unpack(t)) end
  if m.stop then stop(r.lane) end
  if m['end'] then
    if m.breaker then breaker(m.breaker) end
    return finish(m.id, r, m['end'][1], m['end'][2], m['end'][3], fields, m.drop or {}, leave)
  end
  if m.lane_state then call('HSET', lane_key(r.lane), 'state', m.lane_state) end
  if m.drop and #m.drop > 0 then call('HDEL', rec(m.id), unpack(m.drop)) end
  local to = m.to
  if to == 'parked:lane' then
    to = ready_place(m, r)
    enter(m.id, r, to, m.score)
  elseif r.kind == 'msg' and not r.ready_at and not r.pending and not partitioned(to) then
    call('ZADD', lane_key(r.lane) .. ':pending', r.ticket, m.id)
    fields[#fields + 1] = 'pending'
    fields[#fields + 1] = 1
  end
  call('HSET', rec(m.id), 'place', to, 'step', tonumber(r.step) + 1, 'by', nonce, 'moved', now, unpack(fields))
  if old ~= at(to, r) then leave(old, from, m.id) end
  if r.takeovers and PROGRESS[to] then call('HDEL', rec(m.id), 'takeovers') end
  if m.breaker then breaker(m.breaker) end
  wake(m.id, r, to)
  if from == 'running' and to ~= 'running' then wake_dispatch(r.harness) end
  if m.to == 'parked:lane' and to == m.to then lane_look(r.lane) end
end

-- One move whose record stands where the worker saw it: its conditions, then all of it.
local function carry_out(m, r)
  m.pending = r.pending
  for n, g in ipairs(m.guards or {}) do
    g[#g + 1] = m
    if not GUARDS[g[1]](unpack(g, 2)) then return 'guard:' .. n end
  end
  if m.claims and not claim(m) then return 'guard:0' end
  apply(m, r)
  return 'ok'
end

local out, blocked = {}, {}
for i, m in ipairs(A.moves) do
  local r, verdict = load(m.id), nil
  for _, s in ipairs(m.scopes or {}) do if blocked[s] then verdict = 'stale' end end
  if not verdict then
    if not r then verdict = 'stale'
    elseif lost or tonumber(r.step) ~= m.step then verdict = (r.by == nonce) and 'ok' or 'stale'
    else
      local fine, why = pcall(carry_out, m, r)
      if fine then verdict = why
      else
        verdict = 'failed:' .. tostring(type(why) == 'table' and why.err or why)
        if m.claimed and #m.claimed > 0 then call('DEL', unpack(m.claimed)) end
        if m.entered then
          if arriving[m.entered] then arriving[m.entered] = without(arriving[m.entered], m.id)
          else call('ZREM', m.entered, m.id) end
        end
      end
    end
  end
  if verdict ~= 'ok' then for _, s in ipairs(m.scopes or {}) do blocked[s] = true end end
  out[i] = verdict
end
for key, set in pairs(arriving) do if #set > 0 then call('ZADD', key, unpack(set)) end end
for key, set in pairs(leaving) do call('ZREM', key, unpack(set)) end
for _, t in ipairs(A.tidy or {}) do pcall(call, unpack(t)) end
flush_depth()
local o = A.next
if not o then
  if A.release and not lost then call('HDEL', P .. 'held', A.holder) end
  return {out, {}}
end
if o.part then
  local following = lost and {} or batch(o.stage, o.part, A.token, o.limit)
  for _ = 1, 8 do
    local part = following[1] == 'empty' and o.after and pop(o.stage)
    if not part then break end
    if not call('HGET', P .. 'held', o.stage .. ':' .. part) then
      following = batch(o.stage, part, o.after, o.limit)
    end
  end
  return {out, following}
end
if lost then return {out, o.stage == 'dispatch' and started(o) or {}} end
call('HDEL', P .. 'held', A.holder)
local name = in_time() and pop(o.stage)
if not name then return {out, {}} end
return {out, o.stage == 'dispatch' and start(name, o) or take(o.stage, name, o.token)}
