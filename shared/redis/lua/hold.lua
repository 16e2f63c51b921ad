-- hold.lua: take a lease that is no place's claim: an account's connector, the keeper.
-- KEYS: none.  ARGV[1]: now, nonce, name, token.  Reply: 1 held by this token, 0 by another.
if not in_time() then return 0 end
local v = call('HGET', P .. 'held', A.name)
if v and holder_of(v) ~= A.token then return 0 end
if not v then call('HSET', P .. 'held', A.name, A.token .. '|0|') end
return 1
