-- cursor.lua: store a connector's cursor, only for the holder of the account's lease.
-- KEYS: none.  ARGV[1]: now, nonce, name (the lease), token, key, value.  Reply: 1 stored, 0 the lease is another's.
local v = call('HGET', P .. 'held', A.name)
if not v or string.match(v, '^[^|]+') ~= A.token then return 0 end
call('SET', A.key, A.value)
return 1
