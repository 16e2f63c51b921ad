-- admit.lua: may one platform call of an account start now? Rates (GCRA) and calls at once, all or none.
-- KEYS: none.  ARGV[1]: now, nonce, rates [[key, interval_ms, burst_ms]], busy (key), member, most, busy_ms.
-- Reply: 0 it may, or the milliseconds to wait. `busy_ms` bounds how long a caller that died counts.
call('ZREMRANGEBYSCORE', A.busy, '-inf', now)
if call('ZCARD', A.busy) >= A.most and not call('ZSCORE', A.busy, A.member) then return 200 end
local at = {}
for i, r in ipairs(A.rates) do
  local tat = math.max(tonumber(call('GET', r[1]) or 0), now)
  if tat - now > r[3] then return math.ceil(tat - now - r[3]) end
  at[i] = tat + r[2]
end
for i, r in ipairs(A.rates) do
  call('SET', r[1], string.format('%.0f', at[i]), 'PX', math.ceil(at[i] - now + r[2] + 1000))
end
call('ZADD', A.busy, now + A.busy_ms, A.member)
return 0
