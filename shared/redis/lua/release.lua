-- release.lua: give a claim or lease back and wake whoever comes next.
-- KEYS: none.  ARGV[1]: now, nonce, name, token, slots.  Reply: 1 released, 0 not held by this token.
if holder_of(call('HGET', P .. 'held', A.name)) ~= A.token then return 0 end
call('HDEL', P .. 'held', A.name)
local stage, name = string.match(A.name, '^([^:]+):(.+)$')
if partitioned(stage) then
  call('HDEL', P .. 'woken', A.name)
  if call('ZCARD', P .. 'at:' .. A.name) > 0 then wake_partition(stage, name) end
elseif stage == 'judge' or stage == 'quotes' or stage == 'delivery' then
  if call('HGET', rec(name), 'place') == stage then push(stage, name) end
end
return 1
