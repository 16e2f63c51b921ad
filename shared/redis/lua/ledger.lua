-- ledger.lua: what became of a send, apart from any move (see `result` in core.lua).
-- KEYS: none.  ARGV[1]: now, nonce, out, part, token, state, detail, busy (key), member.  Reply: the state that stands now.
call('ZREM', A.busy, A.member)
return result(P .. 'ledger:' .. A.out, tostring(A.part), A.token, A.state, A.detail)
