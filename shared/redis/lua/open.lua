-- open.lua: what waited for a switch (pause, a channel's breaker) goes on, oldest first.
-- KEYS: none.  ARGV[1]: now, nonce, why, limit, slots.  Reply: how many went on.
local n = 0
for _, id in ipairs(call('ZRANGE', P .. 'at:parked:' .. A.why, 0, A.limit - 1)) do
  local r = load(id)
  if r and r.place == 'parked:' .. A.why then
    shift(id, r, r.back)
    n = n + 1
  else
    call('ZREM', P .. 'at:parked:' .. A.why, id)
  end
end
return n
