"""The only imperative shell: a wake-up comes, facts are read, a policy decides, effects are written in one move.

A wake-up has no authority: whoever gets one reads the place afresh, and finds nothing to do when somebody was faster.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import structlog

from shared import metrics
from shared.beats import Hold
from shared.envelope import Envelope, new_id
from shared.outcome import Dead, Stage
from shared.redis.scripts import pairs
from workers.apply import Applied, Seen, apply, insisted, note, outcome_move, read_envelope
from workers.claimed import Claimed, of_batch, of_one, of_turn
from workers.context import Context, harness_settings
from workers.moves import Move, lanes, turn
from workers.pipeline import BATCH, BY_NAME

log = structlog.get_logger()

ROUNDS = 8
"""How often one message may be decided again because the world had changed meanwhile; the next time it is tried alone
and then dead, reason `move-failed`."""
HOT_S: Final = 0.02
"""How long after a task took a wake-up itself the process asks Celery for none: far longer than a quick one takes, far
shorter than anybody would notice where a slow one follows."""
EFFECTS: Final = frozenset({"dispatch", "delivery"})
"""Stages with effects outside: none starts for `lease_s` after the server restarted or failed over."""


class PlanBatch(Protocol):
    """A partition stage: the moves of a batch, in ticket order."""

    def __call__(self, ctx: Context, batch: list[tuple[Seen, Envelope]], claimed: Claimed) -> list[Move]: ...


class PlanOne(Protocol):
    """A stage that calls out for one id: what moves, the claimed id's own move last. Nothing: the claim just ends."""

    async def __call__(self, ctx: Context, seen: Seen, hold: Hold, claimed: Claimed) -> list[tuple[Seen, Move]]: ...


class PlanTurn(Protocol):
    """Dispatch: one turn of `harness`."""

    async def __call__(
        self, ctx: Context, seen: Seen, hold: Hold, harness: str, claimed: Claimed
    ) -> list[tuple[Seen, Move]]: ...


@dataclass(frozen=True, slots=True)
class Plans:
    """What the stages do, by their shape; `workers.stages` fills it."""

    batches: Mapping[Stage, PlanBatch]
    singles: Mapping[Stage, PlanOne]
    turns: PlanTurn


class Runner:
    """Runs wake-ups of every stage in one process."""

    def __init__(self, ctx: Context, plans: Plans) -> None:
        self._ctx = ctx
        self._plans = plans

    async def run(self, stage: Stage, name: str) -> None:
        """Work off what the wake-up `name` of `stage` stands for. Raises nothing but what the process cannot survive:
        whatever else goes wrong is logged, and the keeper brings the work back."""
        if self._ctx.draining or (stage in EFFECTS and self._ctx.server.quiet()):
            return  # the reconciler brings the wake-up back
        try:
            if stage in self._plans.batches:
                self._partitions(stage, name, self._plans.batches[stage])
            elif stage in self._plans.singles:
                await self._single(stage, name, self._plans.singles[stage])
            else:
                await self._turns(name)
        except Exception as error:
            # The claim runs out and the keeper brings the ids back, counted; saying why is all that is left here.
            log.error("stage_failed", stage=stage, error=type(error).__name__, exc_info=error)

    def _partitions(self, stage: Stage, part: str, plan: PlanBatch) -> None:
        """One partition after the other while there are wake-ups: who finds one empty takes the next."""
        ctx = self._ctx
        token = ctx.token()
        reply = ctx.scripts.call("claim", ctx.now_ms(), stage=stage, part=part, token=token, limit=BATCH)
        while reply and reply[0] == "ok":
            after = ctx.token()
            reply = self._partition(stage, token, after, reply, plan)
            token = after

    def _partition(self, stage: Stage, token: str, after: str, reply: list[Any], plan: PlanBatch) -> list[Any]:
        """Batches of one partition until it is empty. Returns another's first batch, taken with the token `after`."""
        ctx, spec, part = self._ctx, BY_NAME[stage], str(reply[1])
        name = f"{stage}:{part}"
        rounds: dict[str, int] = {}
        with ctx.beats.holding(name, token, ctx.settings.pipeline.claim_s, spec.limit_s) as hold:
            while reply and reply[0] == "ok" and reply[1] == part:
                if hold.lost:
                    return []
                # The limit is one batch's: a partition under load may be held for hours.
                hold.until = ctx.clock.monotonic() + spec.limit_s
                with metrics.histogram(metrics.stage_duration, stage).time():
                    seen = [Seen(i, pairs(f)) for i, f in zip(reply[4::2], reply[5::2], strict=True)]
                    claimed = of_batch(ctx, reply, again=bool(rounds))
                    self._waited(stage, *seen)
                    ctx.probe.point(f"{stage}.before_apply")
                    reply = self._batch(stage, part, token, after, plan, seen, claimed, rounds)
                    ctx.probe.point(f"{stage}.after_apply")
                if ctx.draining:
                    break
        if ctx.draining:  # what stands in a partition is somebody else's
            for held, by in ((name, token), (f"{stage}:{reply[1]}" if len(reply) > 1 else name, after)):
                ctx.scripts.call("release", ctx.now_ms(), name=held, token=by, slots={})
            return []
        return reply

    def _batch(
        self,
        stage: Stage,
        part: str,
        token: str,
        after: str,
        plan: PlanBatch,
        batch: list[Seen],
        claimed: Claimed,
        rounds: dict[str, int],
    ) -> list[Any]:
        """Plan and apply one batch. Returns the next one as claim would reply it, [] when there is none for us."""
        ctx = self._ctx
        readable: list[tuple[Seen, Envelope]] = []
        moves: list[Move] = []
        for seen in batch:
            tries = rounds.get(seen.id, 0)
            if tries >= ROUNDS and (moves or readable):
                break  # it is tried alone, in its turn
            if tries > ROUNDS:
                moves.append(outcome_move(ctx, stage, seen, Dead("move-failed", "decided again too often")))
            elif (envelope := read_envelope(ctx, stage, seen, moves)) is not None:
                readable.append((seen, envelope))
            if tries >= ROUNDS:
                break
        moves += plan(ctx, readable, claimed) if readable else []
        by_id = {s.id: s for s in batch}
        more = None if ctx.draining else {"stage": stage, "part": part, "limit": BATCH, "after": after}
        verdicts, following = apply(ctx, moves, holder=f"{stage}:{part}", token=token, following=more)
        for move, verdict in zip(moves, verdicts, strict=True):
            if verdict == "ok":
                rounds.pop(move.id, None)
                note(ctx, stage, by_id[move.id], move)
                continue
            rounds[move.id] = rounds.get(move.id, 0) + 1
            if verdict.startswith("failed"):
                rounds[move.id] = max(rounds[move.id], ROUNDS)
                log.error("move_failed", stage=stage, envelope=move.id, why=verdict[7:200])
        return following

    async def _single(self, stage: Stage, id_: str, plan: PlanOne) -> None:
        """One id after the other while there are wake-ups: who ends one takes the next."""
        ctx, spec = self._ctx, BY_NAME[stage]
        token = ctx.token()
        reply = ctx.scripts.call("take", ctx.now_ms(), stage=stage, id=id_, token=token)
        while reply and reply[0] == "ok":
            length_s = ctx.settings.pipeline.lease_s if stage == "delivery" else ctx.settings.pipeline.claim_s
            seen, name, after = Seen(reply[1], pairs(reply[2])), f"{stage}:{reply[1]}", ctx.token()
            with (
                ctx.beats.holding(name, token, length_s, spec.limit_s, seen.id) as hold,
                metrics.histogram(metrics.stage_duration, stage).time(),
            ):
                self._waited(stage, seen)
                planned = await plan(ctx, seen, hold, of_one(ctx, reply, seen.get("account")))
                reply = await self._finish(stage, name, hold, planned, {"stage": stage, "token": after})
            token = after

    async def _turns(self, harness: str) -> None:
        """Turns, one after the other while there are wake-ups for startable ones."""
        ctx = self._ctx
        token = ctx.token()
        following = turn(ctx.settings, token, new_id(ctx.now_ms()))
        reply = ctx.scripts.call("start", ctx.now_ms(), harness=harness, turn=following, **lanes(ctx.settings))
        while reply and reply[0] == "ok":
            after = ctx.token()
            following = {"stage": "dispatch", **turn(ctx.settings, after, new_id(ctx.now_ms()))}
            reply = await self._turn(token, reply, following)
            token = after

    async def _turn(self, token: str, reply: list[Any], following: dict[str, Any]) -> list[Any]:
        ctx, settings = self._ctx, self._ctx.settings
        seen, first = Seen(reply[1], pairs(reply[4])), reply[2] == "first"
        harness = seen.get("harness")
        known = harness_settings(settings, harness)
        limit_s = (known.timeout_s if known else 0) + BY_NAME["dispatch"].limit_s
        name = f"turn:{seen.id}"
        with (
            ctx.beats.holding(name, token, settings.pipeline.lease_s, limit_s, seen.id) as hold,
            metrics.turns_in_progress.track_inprogress(),
            metrics.histogram(metrics.stage_duration, "dispatch").time(),
        ):
            ctx.probe.point("turn.first" if first else "turn.again", seen.id)
            ctx.probe.point("dispatch.after_start")
            planned = await self._plans.turns(ctx, seen, hold, harness, of_turn(ctx, reply))
            return await self._finish("dispatch", name, hold, planned, following)

    def _waited(self, stage: Stage, *batch: Seen) -> None:
        """How long each has stood in its stage set."""
        now, waits = self._ctx.now_ms(), metrics.histogram(metrics.queue_wait, stage)
        for seen in batch:
            waits.observe(max(now - int(seen.get("moved") or now), 0) / 1000)

    async def _finish(
        self,
        stage: Stage,
        name: str,
        hold: Hold,
        planned: list[tuple[Seen, Move]],
        following: dict[str, Any],
    ) -> list[Any]:
        """Apply the moves of a single claim and give the claim back. Returns what it goes on with, if it may."""
        ctx = self._ctx
        if hold.lost:
            log.warning("claim_lost", stage=stage)
            if not any(move.result for _, move in planned):
                return []  # else its result is a fact, and is written all the same
        ctx.probe.point(f"{stage}.before_apply")
        moves, nonce = [move for _, move in planned], ctx.token()

        def written() -> Applied:
            # Asked at each try: the server may have restarted since the first one.
            more = None if ctx.draining or (stage in EFFECTS and ctx.server.quiet()) else following
            return apply(ctx, moves, holder=name, token=hold.token, release=True, nonce=nonce, following=more)

        verdicts, then = await insisted(ctx, hold, written)
        for (seen, move), verdict in zip(planned, verdicts, strict=True):
            if verdict.startswith("failed"):
                log.error("move_failed", stage=stage, envelope=seen.id, why=verdict[7:200])
                buried = outcome_move(ctx, stage, seen, Dead("move-failed", verdict[7:200]))
                verdict, move = apply(ctx, [buried]).verdicts[0], buried
            if verdict == "ok":
                note(ctx, stage, seen, move)
            else:
                log.info("move_refused", stage=stage, envelope=seen.id, why=verdict)
        ctx.probe.point(f"{stage}.after_apply")
        ctx.hot_until = ctx.clock.monotonic() + HOT_S if then and then[0] == "ok" else float("-inf")
        return then
