-- repush.lua: the reconciler: what stands in a stage set, unclaimed, and has no wake-up any more, gets a new one, at
-- the consuming end.
-- KEYS: none.  ARGV[1]: now, nonce, partitions, harnesses [..], wait_ms, limit, slots.
-- Reply: [stage, count, ...].
local out = {}
local function oldest(stage)
  local m = call('LINDEX', P .. 'wake.' .. stage, -1)
  local at_ms = m and tonumber(string.match(m, '"pushed_at": ?"?(%d+)'))
  return at_ms and math.max(now - at_ms, 0) or 0
end
for _, stage in ipairs({'admission', 'engagement'}) do
  local n, age = 0, oldest(stage)
  for part = 0, A.partitions - 1 do
    local name = stage .. ':' .. part
    if call('ZCARD', P .. 'at:' .. name) > 0 and call('HEXISTS', P .. 'held', name) == 0
        and now - tonumber(call('HGET', P .. 'woken', name) or 0) > age + A.wait_ms then
      call('HSET', P .. 'woken', name, now)
      push(stage, tostring(part), true)
      n = n + 1
    end
  end
  out[#out + 1] = stage
  out[#out + 1] = n
end
for _, stage in ipairs({'judge', 'quotes', 'delivery'}) do
  local n, set = 0, P .. 'at:' .. stage
  for _, id in ipairs(call('ZRANGE', set, '-inf', now - oldest(stage) - A.wait_ms - 1, 'BYSCORE', 'LIMIT', 0, A.limit)) do
    if call('HEXISTS', P .. 'held', stage .. ':' .. id) == 0 then
      if call('HGET', rec(id), 'place') == stage then
        push(stage, id, true)
        call('ZADD', set, 'XX', now, id)
        n = n + 1
      else
        call('ZREM', set, id)
      end
    end
  end
  out[#out + 1] = stage
  out[#out + 1] = n
end
-- An empty list under work that may start means that wake-ups were lost, even while others keep the harness going: they
-- are still counted as under way and would take the place of new ones for ever.
local n, age, none = 0, oldest('dispatch'), call('EXISTS', P .. 'wake.' .. 'dispatch') == 0
for _, h in ipairs(A.harnesses) do
  if call('ZCARD', P .. 'at:dispatch:' .. h) > 0
      and (none or now - tonumber(call('HGET', P .. 'harness:' .. h, 'woken') or 0) > age + A.wait_ms)
      and free_slots(h) > 0 then
    call('HSET', P .. 'harness:' .. h, 'wakes', 0)
    wake_dispatch(h)
    n = n + 1
  end
end
out[#out + 1] = 'dispatch'
out[#out + 1] = n
return out
