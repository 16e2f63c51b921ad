-- renew.lua: the beat of claims and leases.
-- KEYS: none.  ARGV[1]: now, nonce, held [[name, token, ids]], assert (true after a server restart or failover: what
--   the server forgot is written again from the holder's memory).
-- Reply: one word each: ok, lost (somebody else holds it, or nobody), cancel (held, and /stop marked the turn).
local out = {}
for i, h in ipairs(A.held) do
  local v = call('HGET', P .. 'held', h[1])
  if not v and A.assert then
    v = h[2] .. '|0|' .. h[3]
  end
  local token, beat, ids = string.match(v or '', '^([^|]+)|(%d+)|(.*)$')
  if token ~= h[2] then out[i] = 'lost'
  else
    call('HSET', P .. 'held', h[1], token .. '|' .. (tonumber(beat) + 1) .. '|' .. ids)
    out[i] = 'ok'
    if string.sub(h[1], 1, 5) == 'turn:' and call('HGET', rec(ids), 'cancel') then out[i] = 'cancel' end
  end
end
return out
