-- accept.lua: take messages in, each with its record, its ticket and a wake-up, or refuse them all.
-- KEYS: none.  ARGV[1]: now, nonce, max_depth, max_account_depth, items [{id, env, part, lane, account, channel, fkey, at, mid}].
-- Reply: ['ok', accepted count] or ['full', 'account' | 'global', name]. A message that has a record is left alone.
local fresh, keys, known = {}, {}, {}
for i, m in ipairs(A.items) do keys[i] = rec(m.id) end
local some = call('EXISTS', unpack(keys)) > 0
for i, m in ipairs(A.items) do
  if not known[m.id] and not (some and call('EXISTS', keys[i]) == 1) then
    known[m.id] = true
    fresh[#fresh + 1] = m
    count(m.account, 1)
  end
end
if #fresh == 0 then return {'ok', 0} end
local names = {}
for account in pairs(depth) do names[#names + 1] = account end
local before = call('HMGET', P .. 'depth', unpack(names))
for i, account in ipairs(names) do
  local most = account == '*' and A.max_depth or A.max_account_depth
  if most > 0 and tonumber(before[i] or 0) + depth[account] > most then
    return account == '*' and {'full', 'global', ''} or {'full', 'account', account}
  end
end
local last, sets = call('INCRBY', P .. 'ticket', #fresh) - #fresh, {}
for _, m in ipairs(fresh) do
  last = last + 1
  call('HSET', rec(m.id), 'place', 'admission', 'step', 1, 'kind', 'msg', 'env', m.env, 'part', m.part, 'lane', m.lane,
    'account', m.account, 'channel', m.channel, 'fkey', m.fkey, 'ticket', last, 'at', m.at, 'mid', m.mid or '',
    'by', nonce, 'moved', now)
  local set = sets[m.part] or {}
  set[#set + 1] = last
  set[#set + 1] = m.id
  sets[m.part] = set
end
for part, set in pairs(sets) do
  call('ZADD', P .. 'at:admission:' .. part, unpack(set))
  wake_partition('admission', part)
end
flush_depth()
return {'ok', #fresh}
