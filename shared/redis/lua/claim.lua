-- claim.lua: take a partition and its first batch.
-- KEYS: none.  ARGV[1]: now, nonce, stage, part, token, limit.
-- Reply: ['held'] somebody else has it; ['empty'] nothing to do, released; ['ok', part, {switches}, {account, {overlay},
--   ..}, id, {record's fields and values}, ...].
local held = call('HGET', P .. 'held', A.stage .. ':' .. A.part)
if held and holder_of(held) ~= A.token then return {'held'} end
return batch(A.stage, A.part, A.token, A.limit)
