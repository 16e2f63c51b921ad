-- take.lua: claim one id of judge, quotes or delivery.
-- KEYS: none.  ARGV[1]: now, nonce, stage, id, token.
-- Reply: ['held'] somebody else has it, ['gone'] it is not there any more, or ['ok', id, {record's fields and values},
--   {access overlay}].
return take(A.stage, A.id, A.token)
