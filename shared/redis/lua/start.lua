-- start.lua: what a dispatch wake-up does: start the first startable turn of its harness.
-- KEYS: none.  ARGV[1]: now, nonce, slots {harness: limit}, order_wait_ms, harness, turn {token, fresh,
--   idle {harness: ms}, touch_ms, binding_ms}.
-- Reply: ['none'] or ['ok', id, 'first' | 'again', 'probe' | '', {record's fields and values}, frozen input, session,
--   {switches}]. Asked again with the same token it names the same turn; asked for too long ago: none.
if not in_time() then return {'none'} end
if call('EXISTS', P .. 'started:' .. A.turn.token) == 1 then return started(A.turn) or {'none'} end
return start(A.harness, A.turn)
