-- fire.lua: what is due by time goes back to work.
-- KEYS: none.  ARGV[1]: now, nonce, limit, slots, order_wait_ms.
-- Reply: [moved count, [kind, name, id] ...]: timers that a script alone cannot carry out come back to the keeper.
local moved, rest = 0, {}
for _, id in ipairs(call('ZRANGE', P .. 'at:due', '-inf', now, 'BYSCORE', 'LIMIT', 0, A.limit)) do
  local r = load(id)
  if r and r.place == 'due' then
    shift(id, r, r.back)
    moved = moved + 1
  else
    call('ZREM', P .. 'at:due', id)
  end
end
for _, t in ipairs(call('ZRANGE', P .. 'timers', '-inf', now, 'BYSCORE', 'LIMIT', 0, A.limit)) do
  local kind, name, id = string.match(t, '^([^|]*)|([^|]*)|(.*)$')
  if kind == 'order' then lane_look(name)
  elseif kind == 'breaker' then wake_dispatch(name)
  else rest[#rest + 1] = {kind, name, id} end
  call('ZREM', P .. 'timers', t)
  moved = moved + 1
end
table.insert(rest, 1, moved)
return rest
