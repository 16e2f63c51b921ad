-- send.lua: may one part be sent now? Its intent is written in the same step, at the account's rate.
-- KEYS: none.  ARGV[1]: now, nonce, out, part, token, holder, switches (as the caller saw them), rates [[key,
--   interval_ms, burst_ms]], busy (key), most, busy_ms.
-- Reply: ['yes'], ['lost'] the claim is not held, ['switched', {switches}] they are not what the caller saw,
--   ['wait', ms], or the state of the part that forbids it (sent, intent, unknown).
if not in_time() then return {'lost'} end
if holder_of(call('HGET', P .. 'held', A.holder)) ~= A.token then return {'lost'} end
local switches = call('HGETALL', P .. 'switches')
local same = #switches == #A.switches
local seen = {}
for i = 1, #A.switches, 2 do seen[A.switches[i]] = A.switches[i + 1] end
for i = 1, #switches, 2 do same = same and seen[switches[i]] == switches[i + 1] end
if not same then return {'switched', switches} end
local key, field = P .. 'ledger:' .. A.out, tostring(A.part)
local state, token = string.match(call('HGET', key, field) or '', '^([^|]+)|([^|]*)')
if state == 'intent' and token == A.token then return {'yes'} end
if state and state ~= 'not-sent' then return {state} end
local wait = admit(A.rates, A.busy, A.holder, A.most, A.busy_ms)
if wait > 0 then return {'wait', wait} end
call('HSET', key, field, 'intent|' .. A.token .. '|' .. string.format('%.0f', now) .. '|')
return {'yes'}
