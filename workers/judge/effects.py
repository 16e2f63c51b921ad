"""The judge stage at work: one message, one verdict, back to its partition under its old ticket."""

import json

from shared.beats import Hold
from workers.apply import Seen, outcome_move
from workers.claimed import Claimed
from workers.context import Context
from workers.judge import facts
from workers.judge.policy import outcome
from workers.moves import Move


async def plan(ctx: Context, seen: Seen, hold: Hold, claimed: Claimed) -> list[tuple[Seen, Move]]:
    """The move of one message: its verdict on the record."""
    said = facts.verdict(ctx)
    move = outcome_move(ctx, "judge", seen, outcome())
    move.fields["verdict"] = json.dumps(said)
    return [(seen, move)]
