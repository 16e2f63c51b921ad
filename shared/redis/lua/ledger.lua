-- ledger.lua: the delivery ledger of one outbound record: an intent before each part, then what became of it.
-- KEYS: none.  ARGV[1]: now, nonce, op, id, part, token, holder; for op result: state, detail.
-- Reply: op intent: 'yes', 'lost' (the claim is not held), or the state that forbids it (sent, intent, unknown).
--        op result: the state that stands now. A result is a fact: it is taken from the intent's token without any claim.
local key, field = P .. 'ledger:' .. A.id, tostring(A.part)
local v = call('HGET', key, field)
local state, token = string.match(v or '', '^([^|]+)|([^|]*)')
if A.op == 'intent' then
  if not in_time() then return 'lost' end
  local held = call('HGET', P .. 'held', A.holder)
  if not held or string.match(held, '^[^|]+') ~= A.token then return 'lost' end
  if state and state ~= 'not-sent' and not (state == 'intent' and token == A.token) then return state end
  call('HSET', key, field, 'intent|' .. A.token .. '|' .. string.format('%.0f', now) .. '|')
  return 'yes'
end
if state == 'sent' or (state and token ~= A.token and A.state ~= 'sent') then return state end
call('HSET', key, field, A.state .. '|' .. A.token .. '|' .. string.format('%.0f', now) .. '|' .. A.detail)
return A.state
