-- admit.lua: may one platform call of an account start now?
-- KEYS: none.  ARGV[1]: now, nonce, rates [[key, interval_ms, burst_ms]], busy (key), member, most, busy_ms.
-- Reply: 0 it may, or the milliseconds to wait. `busy_ms` bounds how long a caller that died counts.
return admit(A.rates, A.busy, A.member, A.most, A.busy_ms)
