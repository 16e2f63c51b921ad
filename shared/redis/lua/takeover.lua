-- takeover.lua: the keeper takes a claim or lease over that has not moved for its whole length, and counts it.
-- KEYS: none.  ARGV[1]: now, nonce, name, seen (the whole value that did not move), token (the keeper's).
-- Reply: [] it has moved, or [id, {record's fields and values}, ...] of the ids that the holder had
--   named and that are still where it worked: what had gone on is no reason to count anything.
-- The same call again answers the same and counts nothing.
local v = call('HGET', P .. 'held', A.name)
local ids, out = string.match(A.seen, '^[^|]+|%d+|(.*)$'), {}
local again = v == A.token .. '|0|' .. ids
if v ~= A.seen and not again then return {} end
call('HSET', P .. 'held', A.name, A.token .. '|0|' .. ids)
local kind = string.match(A.name, '^[^:]+')
local where = kind == 'turn' and 'running' or kind
for id in string.gmatch(ids, '[^,]+') do
  local place, account = unpack(call('HMGET', rec(id), 'place', 'account'))
  if account then call('ZREM', P .. 'busy:' .. account, A.name) end -- its platform call is nobody's any more
  if place == where then
    if not again then call('HINCRBY', rec(id), 'takeovers', 1) end
    out[#out + 1] = id
    out[#out + 1] = call('HGETALL', rec(id))
  end
end
return out
