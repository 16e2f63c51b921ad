-- index.lua: an account's outbound index: what was sent, so that a quote of it can be read.
-- KEYS: none.  ARGV[1]: now, nonce, op, account, most (entries kept), age_ms; for op add and find: scope (hex);
--   for add: ids (a JSON list, as text), sent_at, completed_at (ms), text;
--   for find: ids (a list of strings), window_ms, at (the quoted time in ms, or absent).
-- Reply: op add and size: how many entries stand now.
--        op find: {'id' or 'time', the text}, {'twice'} (an id names several), or {'none'}.
-- A row is serial|nonce|sent_at|scope|ids, scored by completed_at; its text lies under the serial in a hash of its own,
-- so that looking through the rows never touches the texts. Ids stay strings: a number would lose their last digits.
local key, texts = P .. 'index:' .. A.account, P .. 'index:' .. A.account .. ':texts'

local function ms(n) return string.format('%.0f', n) end

local function drop(rows)
  for _, row in ipairs(rows) do
    call('ZREM', key, row)
    call('HDEL', texts, string.match(row, '^%d+'))
  end
end

local function trim()
  drop(call('ZRANGEBYSCORE', key, '-inf', '(' .. ms(now - A.age_ms)))
  local over = call('ZCARD', key) - A.most
  if over > 0 then drop(call('ZRANGE', key, 0, over - 1)) end
end

-- A call that is repeated because its answer was lost finds its own row.
local function added()
  local at = ms(A.completed_at)
  for _, row in ipairs(call('ZRANGEBYSCORE', key, at, at)) do
    if string.match(row, '^%d+|([^|]*)') == nonce then return true end
  end
  return false
end

local function add()
  -- Rows of one millisecond stand in the order in which they were written.
  local serial = string.format('%012d', call('HINCRBY', texts, 'serial', 1))
  local row = table.concat({serial, nonce, ms(A.sent_at), A.scope, A.ids}, '|')
  call('ZADD', key, ms(A.completed_at), row)
  call('HSET', texts, serial, A.text)
  local keep = ms(math.max(2 * A.age_ms, 1000))
  call('PEXPIRE', key, keep)
  call('PEXPIRE', texts, keep)
end

local function find()
  local rows, by_id, near = call('ZRANGE', key, 0, -1, 'WITHSCORES'), {}, {}
  for i = 1, #rows, 2 do
    local serial, sent, scope, ids = string.match(rows[i], '^(%d+)|[^|]*|(%d+)|(%x+)|(.*)$')
    if scope == A.scope then
      for _, id in ipairs(cjson.decode(ids)) do
        by_id[id] = by_id[id] or {}
        table.insert(by_id[id], serial)
      end
      if A.at and sent - A.window_ms <= A.at and A.at <= rows[i + 1] + A.window_ms then table.insert(near, serial) end
    end
  end
  for _, id in ipairs(A.ids) do
    local hits = by_id[id]
    if hits then return #hits == 1 and {'id', call('HGET', texts, hits[1])} or {'twice'} end
  end
  return #near == 1 and {'time', call('HGET', texts, near[1])} or {'none'}
end

if A.op == 'add' and not added() then add() end
trim()
if A.op == 'find' then return find() end
return call('ZCARD', key)
