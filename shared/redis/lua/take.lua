-- take.lua: claim one id of judge, quotes or delivery.
-- KEYS: none.  ARGV[1]: now, nonce, stage, id, token.
-- Reply: ['held'] (or asked for too long ago), ['gone'] (it is not there any more), or ['ok', {record's fields and values}].
if not in_time() then return {'held'} end
local name = A.stage .. ':' .. A.id
if call('HGET', rec(A.id), 'place') ~= A.stage then return {'gone'} end
local held = call('HGET', P .. 'held', name)
if held and string.match(held, '^[^|]+') ~= A.token then return {'held'} end
call('HSET', P .. 'held', name, A.token .. '|0|' .. A.id)
return {'ok', call('HGETALL', rec(A.id))}
