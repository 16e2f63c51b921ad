-- core.lua: what every script shares; it stands before each of them.
-- KEYS: none; every key is made here from the prefix P, so that a script may follow a lane wherever it leads.
-- ARGV[1]: one JSON object; `now` (ms) and `nonce` (unique per call, the same when a call is repeated) are always there.
-- Reply: each script says its own.
local A = cjson.decode(ARGV[1])
local now, nonce = A.now, A.nonce
local call = redis.call

-- A claim, start or intent that comes so late would be nobody's. `LATE_MS` 0: time is not the server's (a scenario).
local function in_time()
  if LATE_MS == 0 then return true end
  local t = call('TIME')
  return tonumber(t[1]) * 1000 + tonumber(t[2]) / 1000 - now <= LATE_MS
end
local pushes, depth = 0, {}

local FIELDS = {'place', 'step', 'part', 'lane', 'harness', 'ticket', 'kind', 'account', 'by', 'dups', 'dup_ms', 'fkey',
  'turn', 'guest', 'parent', 'back', 'ready_at', 'takeovers', 'cancel', 'silent'}

local function rec(id) return P .. 'rec:' .. id end
local function lane_key(lane) return P .. 'lane:' .. lane end

local function load(id)
  local v, r = call('HMGET', rec(id), unpack(FIELDS)), {}
  if not v[1] then return nil end
  for i, f in ipairs(FIELDS) do if v[i] then r[f] = v[i] end end
  return r
end

-- The sorted set that holds an id while it is at `place`.
local function at(place, r)
  if place == 'admission' or place == 'engagement' then return P .. 'at:' .. place .. ':' .. r.part end
  if place == 'dispatch' or place == 'running' then return P .. 'at:' .. place .. ':' .. r.harness end
  return P .. 'at:' .. place
end

-- A wake-up: Celery's own message, with its three open places filled.
local function push(stage, name, front)
  pushes = pushes + 1
  local m = string.gsub(WAKE[stage], '@@(%u+)@@', {NAME = name, ID = nonce .. '-' .. pushes, AT = string.format('%.0f', now)})
  call(front and 'RPUSH' or 'LPUSH', P .. 'wake.' .. stage, m)
end

local function wake_partition(stage, part, front)
  if call('SADD', P .. 'flags', stage .. ':' .. part) == 1 then
    call('HSET', P .. 'woken', stage .. ':' .. part, now)
    push(stage, part, front)
  end
end

local function limit_of(harness) return tonumber((A.slots or {})[harness] or 32) end

-- How many turns of a harness may start now: none while its breaker is open, one when it is time to probe.
local function free_slots(harness)
  local b = call('HMGET', P .. 'breaker:' .. harness, 'open_until', 'probe')
  local free = limit_of(harness) - call('ZCARD', P .. 'at:running:' .. harness)
  if not b[1] then return free, false end
  if now < tonumber(b[1]) then return 0, true end
  if b[2] and call('ZSCORE', P .. 'at:running:' .. harness, b[2]) then return 0, true end
  return math.min(free, 1), true
end

-- At most as many dispatch wake-ups as free slots are under way, and none where nothing may start.
local function wake_dispatch(harness)
  if call('ZCARD', P .. 'at:dispatch:' .. harness) == 0 then return end
  if tonumber(call('HGET', P .. 'wakes', harness) or 0) < free_slots(harness) then
    call('HINCRBY', P .. 'wakes', harness, 1)
    call('HSET', P .. 'woken', 'dispatch:' .. harness, now)
    push('dispatch', harness)
  end
end

-- Put an id into a place and wake whoever works there. The caller removes it from where it was.
local function enter(id, r, place, score)
  call('ZADD', at(place, r), score or (place == 'admission' or place == 'engagement') and r.ticket or now, id)
end
local function wake(id, r, place)
  if place == 'admission' or place == 'engagement' then wake_partition(place, r.part)
  elseif place == 'judge' or place == 'quotes' or place == 'delivery' then push(place, id)
  elseif place == 'dispatch' then wake_dispatch(r.harness) end
end

local function timer(at_ms, kind, name, id)
  call('ZADD', P .. 'timers', at_ms, kind .. '|' .. name .. '|' .. id)
end

-- Move a loaded record without effects; used for the lane's own members.
local function shift(id, r, place, score)
  local old = at(r.place, r)
  enter(id, r, place, score)
  call('HSET', rec(id), 'place', place, 'step', tonumber(r.step) + 1, 'by', nonce, 'moved', now)
  if old ~= at(place, r) then call('ZREM', old, id) end
  r.step, r.place = tonumber(r.step) + 1, place
  wake(id, r, place)
end

-- Let a lane's head start if nothing of the lane runs and no earlier message may still become a turn.
local function lane_wake(lane)
  local key = lane_key(lane)
  local l = call('HMGET', key, 'current', 'queued')
  if l[1] then return end
  local head = call('ZRANGE', key .. ':ready', 0, 0, 'WITHSCORES')
  if not head[1] or l[2] == head[1] then return end
  local r = load(head[1])
  local early = call('ZRANGE', key .. ':pending', 0, 0, 'WITHSCORES')
  if early[1] and tonumber(early[2]) < tonumber(head[2]) then
    local until_ms = tonumber(r.ready_at) + A.order_wait_ms
    if now < until_ms then
      timer(until_ms, 'order', lane, head[1])
      if l[2] then -- it had waited long enough for what is pending, but may not pass what is frozen
        shift(l[2], load(l[2]), 'parked:lane')
        call('HDEL', key, 'queued')
      end
      return
    end
    call('HINCRBY', P .. 'stats', 'lane_passed_over', 1)
  end
  local score = now
  if l[2] then
    local q = load(l[2])
    score = call('ZSCORE', at('dispatch', q), l[2]) or now
    shift(l[2], q, 'parked:lane')
  end
  call('HSET', key, 'queued', head[1])
  shift(head[1], r, 'dispatch', score)
end

local function count(account, n) depth[account] = (depth[account] or 0) + n; depth['*'] = (depth['*'] or 0) + n end
local function flush_depth()
  for k, n in pairs(depth) do if n ~= 0 then call('HINCRBY', P .. 'depth', k, n) end end
end

-- A turn that has not started counts as waiting in its lane; its record's `turn` says so.
local function waiting(r, n)
  if call('HINCRBY', lane_key(r.lane), 'waiting', n) <= 0 then call('HDEL', lane_key(r.lane), 'waiting') end
end

-- The end of an id: out of its place, its lane and its slots; then the lane's new head may go. `fields` are written too.
local function finish(id, r, disposition, reason, stage, fields)
  local key, dead = rec(id), disposition == 'dead'
  local old = at(r.place, r)
  call('HSET', key, 'place', 'ended', 'step', tonumber(r.step) + 1, 'by', nonce, 'disposition', disposition,
    'reason', reason, 'stage', stage, 'ended_at', now, unpack(fields or {}))
  if not dead then
    call('HDEL', key, 'env', 'parts')
    call('PEXPIRE', key, r.silent and A.short_ms or A.keep_ms)
    for dup in string.gmatch(r.dups or '', '[^,]+') do call('PEXPIRE', P .. 'dup:' .. dup, r.dup_ms) end
  end
  call('ZREM', old, id)
  if r.kind == 'out' then
    if not dead then call('PEXPIRE', P .. 'ledger:' .. id, A.keep_ms) end
    return
  end
  count(r.account, -1)
  if r.guest then
    if call('HGET', P .. 'guests', r.guest) == id then call('HDEL', P .. 'guests', r.guest) end
  end
  local lk = lane_key(r.lane)
  if r.ready_at then
    if not dead then call('PEXPIRE', P .. 'frozen:' .. r.fkey, A.frozen_ms) end
    call('ZREM', lk .. ':ready', id)
    local l = call('HMGET', lk, 'current', 'queued')
    if l[1] == id then call('HDEL', lk, 'current', 'state', 'asker') end
    if l[2] == id then call('HDEL', lk, 'queued') end
  else
    call('ZREM', lk .. ':pending', id)
  end
  if r.turn then
    call('HDEL', key, 'turn')
    waiting(r, -1)
  end
  if r.place == 'running' then wake_dispatch(r.harness) end
  lane_wake(r.lane)
end
