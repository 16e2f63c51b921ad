"""The only imperative shell: a wake-up comes, facts are read, a policy decides, effects are written in one move.

A wake-up has no authority: whoever gets one reads the place afresh, and finds nothing to do when somebody was faster.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from shared import metrics
from shared.beats import Hold
from shared.envelope import Envelope
from shared.outcome import Dead, Stage
from shared.redis.scripts import pairs
from workers.apply import Seen, apply, insisted, note, outcome_move, read_envelope
from workers.context import Context, harness_settings
from workers.moves import Move, lanes
from workers.pipeline import BATCH, BY_NAME

log = structlog.get_logger()

ROUNDS = 8
"""How often one message may be decided again because the world had changed meanwhile; the next time it is tried alone
and then dead, reason `move-failed`."""
EFFECTS: Final = frozenset({"dispatch", "delivery"})
"""Stages with effects outside: none starts for `lease_s` after the server restarted or failed over."""


class PlanBatch(Protocol):
    """A partition stage: the moves of a batch, in ticket order."""

    def __call__(self, ctx: Context, batch: list[tuple[Seen, Envelope]]) -> list[Move]: ...


class PlanOne(Protocol):
    """A stage that calls out for one id: what moves, the claimed id's own move last. Nothing: the claim just ends."""

    async def __call__(self, ctx: Context, seen: Seen, hold: Hold) -> list[tuple[Seen, Move]]: ...


class PlanTurn(Protocol):
    """Dispatch: one turn of `harness`; `probing` when it tests an open breaker."""

    async def __call__(
        self, ctx: Context, seen: Seen, hold: Hold, harness: str, probing: bool
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
        started = time.perf_counter()
        try:
            if stage in self._plans.batches:
                self._partition(stage, name, self._plans.batches[stage])
            elif stage in self._plans.singles:
                await self._single(stage, name, self._plans.singles[stage])
            else:
                await self._turn(name)
        except Exception as error:
            # The claim runs out and the keeper brings the ids back, counted; saying why is all that is left here.
            log.error("stage_failed", stage=stage, error=type(error).__name__, exc_info=error)
        metrics.stage_duration.labels(stage).observe(time.perf_counter() - started)

    def _partition(self, stage: Stage, part: str, plan: PlanBatch) -> None:
        ctx, spec = self._ctx, BY_NAME[stage]
        name, token = f"{stage}:{part}", ctx.token()
        rounds: dict[str, int] = {}
        with ctx.beats.holding(name, token, ctx.settings.pipeline.claim_s, spec.limit_s) as hold:
            while not hold.lost:
                reply = ctx.scripts.call("claim", ctx.now_ms(), stage=stage, part=part, token=token, limit=BATCH)
                if reply[0] != "ok":
                    return
                # The limit is one batch's: a partition under load may be held for hours.
                hold.until = ctx.clock.monotonic() + spec.limit_s
                seen = [Seen(i, pairs(f)) for i, f in zip(reply[1::2], reply[2::2], strict=True)]
                self._waited(stage, *seen)
                ctx.probe.point(f"{stage}.before_apply")
                if not self._batch(stage, name, token, plan, seen, rounds):
                    return
                ctx.probe.point(f"{stage}.after_apply")
                if ctx.draining:
                    ctx.scripts.call("release", ctx.now_ms(), name=name, token=token, slots={})
                    return

    def _batch(
        self, stage: Stage, name: str, token: str, plan: PlanBatch, batch: list[Seen], rounds: dict[str, int]
    ) -> bool:
        """Plan and apply one batch; False when the claim is gone."""
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
        moves += plan(ctx, readable) if readable else []
        by_id = {s.id: s for s in batch}
        verdicts = apply(ctx, moves, holder=name, token=token)
        for move, verdict in zip(moves, verdicts, strict=True):
            if verdict == "lost":
                return False
            if verdict == "ok":
                note(ctx, stage, by_id[move.id], move)
                continue
            rounds[move.id] = rounds.get(move.id, 0) + 1
            if verdict.startswith("failed"):
                rounds[move.id] = max(rounds[move.id], ROUNDS)
                log.error("move_failed", stage=stage, envelope=move.id, why=verdict[7:200])
        return True

    async def _single(self, stage: Stage, id_: str, plan: PlanOne) -> None:
        ctx, spec = self._ctx, BY_NAME[stage]
        name, token = f"{stage}:{id_}", ctx.token()
        reply = ctx.scripts.call("take", ctx.now_ms(), stage=stage, id=id_, token=token)
        if reply[0] != "ok":
            return
        length_s = ctx.settings.pipeline.lease_s if stage == "delivery" else ctx.settings.pipeline.claim_s
        with ctx.beats.holding(name, token, length_s, spec.limit_s, id_) as hold:
            seen = Seen(id_, pairs(reply[1]))
            self._waited(stage, seen)
            await self._finish(stage, name, hold, await plan(ctx, seen, hold))

    async def _turn(self, harness: str) -> None:
        ctx, settings = self._ctx, self._ctx.settings
        token = ctx.token()
        reply = ctx.scripts.call("start", ctx.now_ms(), harness=harness, token=token, **lanes(settings))
        if reply[0] != "ok":
            return
        id_, first, probing, raw = reply[1], reply[2] == "first", reply[3] == "probe", reply[4]
        known = harness_settings(settings, harness)
        limit_s = (known.timeout_s if known else 0) + BY_NAME["dispatch"].limit_s
        name = f"turn:{id_}"
        with (
            ctx.beats.holding(name, token, settings.pipeline.lease_s, limit_s, id_) as hold,
            metrics.turns_in_progress.track_inprogress(),
        ):
            ctx.probe.point("turn.first" if first else "turn.again", id_)
            ctx.probe.point("dispatch.after_start")
            await self._finish(
                "dispatch", name, hold, await self._plans.turns(ctx, Seen(id_, pairs(raw)), hold, harness, probing)
            )

    def _waited(self, stage: Stage, *batch: Seen) -> None:
        """How long each has stood in its stage set."""
        now = self._ctx.now_ms()
        for seen in batch:
            metrics.queue_wait.labels(stage).observe(max(now - int(seen.get("moved") or now), 0) / 1000)

    async def _finish(self, stage: Stage, name: str, hold: Hold, planned: list[tuple[Seen, Move]]) -> None:
        """Apply the moves of a single claim and give the claim back."""
        ctx = self._ctx
        if hold.lost:
            log.warning("claim_lost", stage=stage)
            return
        ctx.probe.point(f"{stage}.before_apply")
        moves, nonce = [move for _, move in planned], ctx.token()
        verdicts = await insisted(
            ctx, hold, lambda: apply(ctx, moves, holder=name, token=hold.token, release=True, nonce=nonce)
        )
        for (seen, move), verdict in zip(planned, verdicts, strict=True):
            if verdict.startswith("failed"):
                log.error("move_failed", stage=stage, envelope=seen.id, why=verdict[7:200])
                buried = outcome_move(ctx, stage, seen, Dead("move-failed", verdict[7:200]))
                verdict, move = apply(ctx, [buried])[0], buried
            if verdict == "ok":
                note(ctx, stage, seen, move)
            else:
                log.info("move_refused", stage=stage, envelope=seen.id, why=verdict)
        ctx.probe.point(f"{stage}.after_apply")
