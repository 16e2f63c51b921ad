-- core.lua: what every script shares; it stands before each of them.
-- KEYS: none; every key is made here from the prefix P, so that a script may follow a lane wherever it leads.
-- ARGV[1]: one JSON object; `now` (ms) and `nonce` (unique per call, the same when a call is repeated) are always there.
-- Reply: each script says its own.
local A = cjson.decode(ARGV[1])
local now, nonce = A.now, A.nonce
local call = redis.call

-- A start, intent or replay that comes so late would be nobody's. `LATE_MS` 0: time is not the server's (a scenario).
local function in_time()
  if LATE_MS == 0 then return true end
  local t = call('TIME')
  return tonumber(t[1]) * 1000 + tonumber(t[2]) / 1000 - now <= LATE_MS
end
local pushes, depth = 0, {}

local FIELDS = {'place', 'step', 'part', 'lane', 'harness', 'ticket', 'kind', 'account', 'by', 'dups', 'dup_ms', 'fkey',
  'guest', 'back', 'ready_at', 'takeovers', 'cancel', 'silent', 'pending', 'out'}

local function rec(id) return P .. 'rec:' .. id end
local function lane_key(lane) return P .. 'lane:' .. lane end
local function partitioned(place) return place == 'admission' or place == 'engagement' end
local function holder_of(v) return v and string.match(v, '^[^|]+') end

local function load(id)
  local v, r = call('HMGET', rec(id), unpack(FIELDS)), {}
  if not v[1] then return nil end
  for i, f in ipairs(FIELDS) do if v[i] then r[f] = v[i] end end
  return r
end

-- The whole record, as fields and values and by name.
local function record(id)
  local raw, r = call('HGETALL', rec(id)), {}
  for i = 1, #raw, 2 do r[raw[i]] = raw[i + 1] end
  return raw, r
end

-- The sorted set that holds an id while it is at `place`.
local function at(place, r)
  if partitioned(place) then return P .. 'at:' .. place .. ':' .. r.part end
  if place == 'dispatch' or place == 'running' then return P .. 'at:' .. place .. ':' .. r.harness end
  return P .. 'at:' .. place
end

-- A wake-up: Celery's own message, with its three open places filled.
local function push(stage, name, front)
  pushes = pushes + 1
  local m = string.gsub(WAKE[stage], '@@(%u+)@@', {NAME = name, ID = nonce .. '-' .. pushes, AT = string.format('%.0f', now)})
  call(front and 'RPUSH' or 'LPUSH', P .. 'wake.' .. stage, m)
end

-- A partition is woken once, until whoever works at it has found it empty or has given it back.
local function wake_partition(stage, part, front)
  if call('HSETNX', P .. 'woken', stage .. ':' .. part, now) == 1 then push(stage, part, front) end
end

local function limit_of(harness) return tonumber((A.slots or {})[harness] or 32) end

-- How many turns of a harness may start now: none while its breaker is open, one when it is time to probe. Then whether
-- it is that time, and how many wake-ups are under way.
local function free_slots(harness)
  local b = call('HMGET', P .. 'harness:' .. harness, 'open_until', 'probe', 'wakes')
  local free, wakes = limit_of(harness) - call('ZCARD', P .. 'at:running:' .. harness), tonumber(b[3] or 0)
  if not b[1] then return free, false, wakes end
  if now < tonumber(b[1]) then return 0, true, wakes end
  if b[2] and call('ZSCORE', P .. 'at:running:' .. harness, b[2]) then return 0, true, wakes end
  return math.min(free, 1), true, wakes
end

-- At most as many dispatch wake-ups as free slots are under way, and none where nothing may start.
local function wake_dispatch(harness, full)
  if not full and call('ZCARD', P .. 'at:dispatch:' .. harness) == 0 then return end
  local free, _, wakes = free_slots(harness)
  if wakes < free then
    call('HSET', P .. 'harness:' .. harness, 'wakes', wakes + 1, 'woken', now)
    push('dispatch', harness)
  end
end

-- Put an id into a place. The caller removes it from where it was, and wakes whoever works there.
local function score_of(r, place, score) return score or partitioned(place) and r.ticket or now end
local function enter(id, r, place, score) call('ZADD', at(place, r), score_of(r, place, score), id) end
local function wake(id, r, place)
  if partitioned(place) then wake_partition(place, r.part)
  elseif place == 'judge' or place == 'quotes' or place == 'delivery' then push(place, id)
  elseif place == 'dispatch' then wake_dispatch(r.harness, true) end
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

-- A lane as it stands: its current turn and that turn's state, how many frozen turns stand behind it, and how many
-- messages of it are on a way that later ones may overtake (what stands in a partition may not be).
local function lane_of(lane)
  local key = lane_key(lane)
  local l = call('HMGET', key, 'current', 'state')
  local idle = call('EXISTS', key .. ':ready', key .. ':pending') == 0
  return {current = l[1], state = l[2], ready = idle and 0 or call('ZCARD', key .. ':ready'),
    pending = idle and 0 or call('ZCARD', key .. ':pending')}
end
local function turns_waiting(l) return l.ready + l.pending + (l.state == 'queued' and 1 or 0) end

-- Let a lane's head start if nothing of the lane runs and no earlier message may still become a turn. A current turn
-- that is only queued gives way to an earlier one.
local function lane_wake(lane, current, state)
  if current and state ~= 'queued' then return end
  local key = lane_key(lane)
  local head = call('ZRANGE', key .. ':ready', 0, 0, 'WITHSCORES')
  if not head[1] then return end
  local q = current and load(current)
  if q and tonumber(q.ticket) < tonumber(head[2]) then return end
  local r = load(head[1])
  local early = call('ZRANGE', key .. ':pending', 0, 0, 'WITHSCORES')
  local passed = early[1] and tonumber(early[2]) < tonumber(head[2])
  local until_ms = passed and tonumber(r.ready_at) + A.order_wait_ms
  local score = now
  if q then -- it had waited long enough for what is pending, but may not pass what is frozen
    score = call('ZSCORE', at('dispatch', q), current) or now
    call('HDEL', key, 'current', 'state')
    call('ZADD', key .. ':ready', q.ticket, current)
    shift(current, q, 'parked:lane')
  end
  if passed then
    if now < until_ms then return timer(until_ms, 'order', lane, head[1]) end
    call('HINCRBY', P .. 'stats', 'lane_passed_over', 1)
  end
  call('HSET', key, 'current', head[1], 'state', 'queued')
  call('ZREM', key .. ':ready', head[1])
  shift(head[1], r, 'dispatch', score)
end
local function lane_look(lane) lane_wake(lane, unpack(call('HMGET', lane_key(lane), 'current', 'state'))) end

local function count(account, n) depth[account] = (depth[account] or 0) + n; depth['*'] = (depth['*'] or 0) + n end
local function flush_depth()
  for k, n in pairs(depth) do if n ~= 0 then call('HINCRBY', P .. 'depth', k, n) end end
end

-- What became of a send: a fact, taken from the intent's token without any claim. Returns the state that stands now.
-- holding: the token's claim stands, so that nobody else can have written anything.
local function result(key, field, token, state, detail, holding)
  if not holding then
    local was, whose = string.match(call('HGET', key, field) or '', '^([^|]+)|([^|]*)')
    if was == 'sent' or (was and whose ~= token and state ~= 'sent') then return was end
  end
  call('HSET', key, field, state .. '|' .. token .. '|' .. string.format('%.0f', now) .. '|' .. detail)
  return state
end

-- May one platform call of an account start now? Rates (GCRA) and calls at once, all or none: 0 it may, or the
-- milliseconds to wait.
local function admit(rates, busy, member, most, busy_ms)
  if call('ZCARD', busy) >= most and not call('ZSCORE', busy, member) then
    call('ZREMRANGEBYSCORE', busy, '-inf', now)
    if call('ZCARD', busy) >= most then return 200 end
  end
  local keys, at_ms = {}, {}
  for i, r in ipairs(rates) do keys[i] = r[1] end
  local tats = #keys > 0 and call('MGET', unpack(keys)) or {}
  for i, r in ipairs(rates) do
    local tat = math.max(tonumber(tats[i] or 0), now)
    if tat - now > r[3] then return math.ceil(tat - now - r[3]) end
    at_ms[i] = tat + r[2]
  end
  for i, r in ipairs(rates) do
    call('SET', r[1], string.format('%.0f', at_ms[i]), 'PX', math.ceil(at_ms[i] - now + r[2] + 1000))
  end
  call('ZADD', busy, now + busy_ms, member)
  return 0
end

-- The next batch of a partition for whoever holds it: its lowest tickets, with the switches and, in admission, the
-- access overlays of the accounts. Ids that were taken over from a dead worker come alone. An empty partition is given
-- back in the same step.
local function batch(stage, part, token, limit)
  local name = stage .. ':' .. part
  local set, overlays, known = P .. 'at:' .. name, {}, {}
  local out, ids, strays = {'ok', part, {}, overlays}, {}, false
  for _, id in ipairs(call('ZRANGE', set, 0, limit - 1)) do
    local raw, r = record(id)
    if r.place ~= stage then
      call('ZREM', set, id)
      strays = true
    else
      local alone = tonumber(r.takeovers or 0) > 0
      if alone and #ids > 0 then break end
      ids[#ids + 1] = id
      out[#out + 1] = id
      out[#out + 1] = raw
      if stage == 'admission' and not known[r.account] then
        known[r.account] = true
        overlays[#overlays + 1] = r.account
        overlays[#overlays + 1] = call('HGETALL', P .. 'access:' .. r.account)
      end
      if alone then break end
    end
  end
  if #ids > 0 then
    call('HSET', P .. 'held', name, token .. '|0|' .. table.concat(ids, ','))
    out[3] = call('HGETALL', P .. 'switches')
    return out
  end
  call('HDEL', P .. 'held', name)
  call('HDEL', P .. 'woken', name)
  if strays and call('ZCARD', set) > 0 then wake_partition(stage, part) end
  return {'empty'}
end

-- A wake-up of judge, quotes or delivery has come: claim its id.
local function take(stage, id, token)
  local name, raw, r = stage .. ':' .. id, record(id)
  if r.place ~= stage then return {'gone'} end
  if call('HSETNX', P .. 'held', name, token .. '|0|' .. id) == 0
      and holder_of(call('HGET', P .. 'held', name)) ~= token then
    return {'held'}
  end
  return {'ok', id, raw, call('HGETALL', P .. 'access:' .. r.account)}
end

-- Take the oldest wake-up of a stage off its list, as a worker would. Returns its name; what is not exactly a wake-up
-- stays for the workers' guard.
local function pop(stage)
  local list = P .. 'wake.' .. stage
  local raw = call('RPOP', list)
  if not raw then return nil end
  local ours = WAKE[stage]
  local first, past = string.find(ours, '@@NAME@@', 1, true)
  local rest = string.sub(ours, past + 1, string.find(ours, '@@ID@@', 1, true) - 1)
  local stop = string.find(raw, '\\"', first, true)
  if stop and string.sub(raw, 1, first - 1) == string.sub(ours, 1, first - 1)
      and string.sub(raw, stop, stop + #rest - 1) == rest then
    return string.sub(raw, first, stop - 1)
  end
  call('RPUSH', list, raw)
end

-- The session that a lane is bound to; a fresh one where none is, or where it was idle for too long (0: never).
local function session(lane, idle_ms, o)
  local key = P .. 'session:bound:' .. lane
  local b = call('HMGET', key, 'session', 'used_ms')
  local bound, used = b[1], tonumber(b[2] or 0)
  if bound and idle_ms > 0 then
    local ended = tonumber(call('HGET', P .. 'session:' .. bound .. ':meta', 'ended_ms') or 0)
    if now - math.max(used, ended) > idle_ms then bound = nil end
  end
  if not bound or idle_ms > 0 or now - used > o.touch_ms then
    call('HSET', key, 'session', bound or o.fresh, 'used_ms', math.max(now, used))
    call('PEXPIRE', key, o.binding_ms)
  end
  return bound or o.fresh
end

-- What a started turn's worker needs: the record, the frozen input, the session, the switches.
local function turn(id, raw, r, first, testing, o)
  return {'ok', id, first and 'first' or 'again', testing and 'probe' or '', raw, call('GET', P .. 'frozen:' .. r.fkey),
    session(r.lane, o.idle[r.harness] or 0, o), call('HGETALL', P .. 'switches')}
end

-- A wake-up of a harness has come: start its first startable turn, lane, slot and breaker in one step or not at all.
-- o: {token, fresh, idle {harness: ms}, touch_ms, binding_ms}. The set holds only turns that are current in their lanes.
local function start(h, o)
  if call('HINCRBY', P .. 'harness:' .. h, 'wakes', -1) < 0 then call('HSET', P .. 'harness:' .. h, 'wakes', 0) end
  local set, running = P .. 'at:dispatch:' .. h, P .. 'at:running:' .. h
  local free, testing = free_slots(h)
  if free < 1 then return {'none'} end
  local queued = call('ZRANGE', set, 0, 15)
  for i, id in ipairs(queued) do
    local raw, r = record(id)
    if r.place ~= 'dispatch' then
      call('ZREM', set, id)
    -- Where somebody is at it already, the server has forgotten that, and his claim has just been written again.
    elseif call('HSETNX', P .. 'held', 'turn:' .. id, o.token .. '|0|' .. id) == 1 then
      local changed = {place = 'running', step = string.format('%d', r.step + 1), by = nonce, asked = '1'}
      call('ZADD', running, now, id)
      call('HSET', lane_key(r.lane), 'state', 'running')
      call('HSET', rec(id), 'place', changed.place, 'step', changed.step, 'by', nonce, 'asked', 1)
      for f = 1, #raw, 2 do raw[f + 1] = changed[raw[f]] or raw[f + 1] end
      if not r.asked then raw[#raw + 1] = 'asked'; raw[#raw + 1] = '1' end
      if testing then call('HSET', P .. 'harness:' .. h, 'probe', id) end
      call('SET', P .. 'started:' .. o.token, id, 'PX', 120000)
      call('ZREM', set, id)
      if queued[i + 1] then wake_dispatch(h, true) end
      return turn(id, raw, r, not r.asked, testing, o)
    end
  end
  return {'none'}
end

-- The turn that a start with this token got already: the same call again, as long as the turn is still the token's.
local function started(o)
  local id = call('GET', P .. 'started:' .. o.token)
  if not id or holder_of(call('HGET', P .. 'held', 'turn:' .. id)) ~= o.token then return nil end
  local raw, r = record(id)
  return turn(id, raw, r, false, call('HGET', P .. 'harness:' .. r.harness, 'probe') == id, o)
end

-- The end of an id: out of its place, its lane and its slots; then the lane's new head may go. `fields` are written too,
-- `drop` are not needed any more. `leave` removes it from its place.
local function finish(id, r, disposition, reason, stage, fields, drop, leave)
  local key, dead, old = rec(id), disposition == 'dead', at(r.place, r)
  call('HSET', key, 'place', 'ended', 'step', tonumber(r.step) + 1, 'by', nonce, 'disposition', disposition,
    'reason', reason, 'stage', stage, 'ended_at', now, unpack(fields))
  if not dead then
    call('HDEL', key, 'env', 'parts', 'target', unpack(drop))
    call('PEXPIRE', key, r.silent and A.short_ms or A.keep_ms)
    for dup in string.gmatch(r.dups or '', '[^,]+') do call('PEXPIRE', P .. 'dup:' .. dup, r.dup_ms) end
    if r.out then call('PEXPIRE', P .. 'ledger:' .. r.out, A.keep_ms) end
  elseif #drop > 0 then
    call('HDEL', key, unpack(drop))
  end
  leave(old, r.place, id)
  if r.kind == 'out' then return end
  count(r.account, -1)
  if r.guest and call('HGET', P .. 'guests', r.guest) == id then call('HDEL', P .. 'guests', r.guest) end
  local lane = lane_key(r.lane)
  if r.ready_at then
    if not dead then call('PEXPIRE', P .. 'frozen:' .. r.fkey, A.frozen_ms) end
    local l = call('HMGET', lane, 'current', 'state')
    if l[1] == id then
      call('HDEL', lane, 'current', 'state')
      l = {}
    elseif r.place == 'parked:lane' then
      call('ZREM', lane .. ':ready', id)
    end
    if r.place == 'running' then wake_dispatch(r.harness) end
    lane_wake(r.lane, l[1], l[2])
  elseif r.pending then
    call('ZREM', lane .. ':pending', id)
    lane_look(r.lane)
  end
end
