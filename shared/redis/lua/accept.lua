-- accept.lua: take messages in, each with its record, its ticket and a wake-up, or refuse them all.
-- KEYS: none.  ARGV[1]: now, nonce, max_depth, max_account_depth, items [{id, env, part, lane, account, channel, fkey, at, mid}].
-- Reply: ['ok', accepted count] or ['full', 'account' | 'global', name]. A message that has a record is left alone.
for _, m in ipairs(A.items) do count(m.account, 1) end
if A.max_depth > 0 and tonumber(call('HGET', P .. 'depth', '*') or 0) + depth['*'] > A.max_depth then
  return {'full', 'global', ''}
end
for account, n in pairs(depth) do
  if account ~= '*' and A.max_account_depth > 0
      and tonumber(call('HGET', P .. 'depth', account) or 0) + n > A.max_account_depth then
    return {'full', 'account', account}
  end
end
depth = {}
local taken = 0
for _, m in ipairs(A.items) do
  local key = rec(m.id)
  if call('EXISTS', key) == 0 then
    local ticket = call('INCR', P .. 'ticket:' .. m.part)
    call('HSET', key, 'place', 'admission', 'step', 1, 'kind', 'msg', 'env', m.env, 'part', m.part, 'lane', m.lane,
      'account', m.account, 'channel', m.channel, 'fkey', m.fkey, 'ticket', ticket, 'at', m.at, 'mid', m.mid or '', 'by', nonce, 'moved', now)
    call('ZADD', P .. 'at:admission:' .. m.part, ticket, m.id)
    call('ZADD', lane_key(m.lane) .. ':pending', ticket, m.id)
    count(m.account, 1)
    wake_partition('admission', m.part)
    taken = taken + 1
  end
end
flush_depth()
return {'ok', taken}
