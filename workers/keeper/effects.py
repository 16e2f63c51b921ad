"""What the keeper does about a claim or lease that ran out: counted, decided by its stage, given back."""

import structlog

from shared import metrics
from shared.outcome import Dead, Stage
from shared.redis.scripts import pairs
from workers.apply import Seen, apply, note, outcome_move
from workers.context import Context
from workers.delivery.effects import ended
from workers.dispatch.effects import recovered
from workers.moves import Move, lanes

log = structlog.get_logger()

STAGE_OF = {"turn": "dispatch"}


def take_over(ctx: Context, name: str, value: str) -> None:
    """Take one over and bring what it named back to work, or end what kills its workers again and again."""
    token = ctx.token()
    rows = ctx.scripts.call("takeover", ctx.now_ms(), name=name, seen=value, token=token)
    kind = name.split(":", 1)[0]
    stage: Stage = STAGE_OF.get(kind, kind)  # pyright: ignore[reportAssignmentType]
    planned: list[tuple[Seen, Move]] = []
    for id_, raw in zip(rows[::2], rows[1::2], strict=True):
        seen = Seen(id_, pairs(raw))
        metrics.takeovers.labels(stage).inc()
        log.warning("taken_over", stage=stage, envelope=id_, takeovers=seen.takeovers)
        planned += _decided(ctx, stage, seen)
    moves = [move for _, move in planned]
    for (seen, move), verdict in zip(
        planned,
        apply(ctx, moves, holder=name, token=token, release=stage == "dispatch").verdicts if moves else [],
        strict=True,
    ):
        if verdict == "ok":
            note(ctx, stage, seen, move)
    ctx.scripts.call("release", ctx.now_ms(), name=name, token=token, **lanes(ctx.settings))


def _decided(ctx: Context, stage: Stage, seen: Seen) -> list[tuple[Seen, Move]]:
    if stage == "dispatch":
        return [(seen, recovered(ctx, seen))] if seen.get("place") == "running" else []
    if seen.takeovers <= ctx.settings.pipeline.max_takeovers:
        return []
    loop = Dead("crash-loop", "workers died on it again and again")
    if stage == "delivery":
        return [(seen, ended(ctx, seen, loop))]
    return [(seen, outcome_move(ctx, stage, seen, loop))]
