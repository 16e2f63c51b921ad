-- takeover.lua: the keeper takes a claim or lease over that has not moved for its whole length, and counts it.
-- KEYS: none.  ARGV[1]: now, nonce, name, seen (the whole value that did not move), token (the keeper's).
-- Reply: [] it has moved, or [id, {record's fields and values}, ...] of the live ids that the holder had named.
local v = call('HGET', P .. 'held', A.name)
if v ~= A.seen then return {} end
local ids, out = string.match(v, '^[^|]+|%d+|(.*)$'), {}
call('HSET', P .. 'held', A.name, A.token .. '|0|' .. ids)
for id in string.gmatch(ids, '[^,]+') do
  local place, account = unpack(call('HMGET', rec(id), 'place', 'account'))
  if account then call('ZREM', P .. 'busy:' .. account, A.name) end -- its platform call is nobody's any more
  if place and place ~= 'ended' then
    call('HINCRBY', rec(id), 'takeovers', 1)
    out[#out + 1] = id
    out[#out + 1] = call('HGETALL', rec(id))
  end
end
return out
