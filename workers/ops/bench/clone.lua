-- clone.lua: copy what one conversation left in the server, under new names.
-- KEYS: none; the keys are those of the template.  ARGV[1]: first, count (copies), formats [one a name], keys
--   [{name, type, ttl_ms (-1: none), items [..]}]; a name or item is a list of texts and numbers: number N stands for
--   name N of the copy.
-- Reply: how many keys were written.
local A = cjson.decode(ARGV[1])
local call, written = redis.call, 0
local ADD = {hash = 'HSET', string = 'SET', list = 'RPUSH', set = 'SADD', zset = 'ZADD'}

local function made(pieces, names)
  if #pieces == 1 and type(pieces[1]) == 'string' then return pieces[1] end
  local out = {}
  for i, piece in ipairs(pieces) do out[i] = type(piece) == 'number' and names[piece] or piece end
  return table.concat(out)
end

for n = A.first, A.first + A.count - 1 do
  local names = {}
  for i, format in ipairs(A.formats) do names[i] = string.format(format, n * 16 + i) end
  for _, key in ipairs(A.keys) do
    local name, items = made(key.name, names), {}
    for i, item in ipairs(key.items) do items[i] = made(item, names) end
    call(ADD[key.type], name, unpack(items))
    if key.ttl_ms > 0 then call('PEXPIRE', name, key.ttl_ms) end
    written = written + 1
  end
end
return written
