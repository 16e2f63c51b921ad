-- claim.lua: take a partition, or its next batch; an empty partition is given back in the same step.
-- KEYS: none.  ARGV[1]: now, nonce, stage, part, token, limit.
-- Reply: ['held'] somebody else has it; ['empty'] nothing to do, released; ['ok', id, {record's fields and values}, ...].
-- Ids that were taken over from a dead worker come alone. The wake-up's flag is cleared whatever the reply, but for a claim that comes too late:
-- that is as if it never came.
if not in_time() then return {'held'} end
local name = A.stage .. ':' .. A.part
call('SREM', P .. 'flags', name)
local held = call('HGET', P .. 'held', name)
if held and string.match(held, '^[^|]+') ~= A.token then return {'held'} end
local set, out, ids = P .. 'at:' .. name, {'ok'}, {}
for _, id in ipairs(call('ZRANGE', set, 0, A.limit - 1)) do
  local raw = call('HGETALL', rec(id))
  local place, takeovers = nil, 0
  for i = 1, #raw, 2 do
    if raw[i] == 'place' then place = raw[i + 1] elseif raw[i] == 'takeovers' then takeovers = tonumber(raw[i + 1]) end
  end
  if place ~= A.stage then
    call('ZREM', set, id)
  else
    if takeovers > 0 and #ids > 0 then break end
    ids[#ids + 1] = id
    out[#out + 1] = id
    out[#out + 1] = raw
    if takeovers > 0 then break end
  end
end
if #ids == 0 then
  if held then call('HDEL', P .. 'held', name) end
  if call('ZCARD', set) > 0 then wake_partition(A.stage, A.part) end
  return {'empty'}
end
call('HSET', P .. 'held', name, A.token .. '|0|' .. table.concat(ids, ','))
return out
