"""The dispatch stage at work: the first startable turn of a harness, asked once, its answer made ready to send."""

import time

from redis import exceptions as redis_errors

from shared import metrics
from shared.beats import Hold
from shared.channels.port import Part
from shared.frozen import FrozenMismatch, FrozenTurn
from shared.outcome import Dead, Finish, Outcome, Park, Retry
from shared.settings import AccountSettings
from workers import notices, outbound
from workers.acknowledging import acknowledged
from workers.apply import Seen, outcome_move
from workers.context import Context, harness_settings, routed_mode
from workers.dispatch import facts, policy
from workers.dispatch.facts import Interrupted, Tried
from workers.dispatch.policy import Before, after, before
from workers.moves import Move


async def plan(ctx: Context, seen: Seen, hold: Hold, harness: str, probing: bool) -> list[tuple[Seen, Move]]:
    """The move of one turn: asked, and what came of it. Nothing when the hold was lost."""
    try:
        return [(seen, await _move(ctx, seen, hold, harness, probing))]
    except Interrupted:
        return []


async def _move(ctx: Context, seen: Seen, hold: Hold, harness_name: str, probing: bool) -> Move:
    try:
        frozen = facts.frozen_of(ctx, seen)
    except FrozenMismatch as error:
        return outcome_move(ctx, "dispatch", seen, Dead("frozen-mismatch", str(error)))
    account = ctx.account(frozen.account)
    if account is None:
        return outcome_move(ctx, "dispatch", seen, Finish("ignored", "account.removed"))
    settings = harness_settings(ctx.settings, harness_name)
    if settings is None:
        gone = Dead("harness-refused", f"no harness {harness_name} is configured")
        return _ended(ctx, seen, gone, frozen, account)
    sending = ctx.switches.read().sending
    early = before(
        Before(
            now_ms=ctx.now_ms(),
            received_at_ms=int(seen.get("at")),
            give_up_s=settings.give_up_s,
            refusal=sending.refuses(account.channel) if sending.read_only else None,
        )
    )
    if early is not None:
        return _ended(ctx, seen, early, frozen, account)
    harness = ctx.harness(harness_name)
    try:
        turn = facts.turn_of(ctx, seen, frozen)
    except redis_errors.RedisError:
        # Nothing was asked yet (the server's memory is full, say): not to be taken for a turn whose end nobody knows.
        return _ended(ctx, seen, Retry("session-unavailable", counts=False), frozen, account)
    started = time.perf_counter()
    async with acknowledged(ctx, account, frozen.target):
        ctx.probe.point("harness")
        tried = await facts.asked(ctx, seen, turn, harness, hold, settings.timeout_s)
    metrics.turn_duration.labels(harness_name).observe(time.perf_counter() - started)
    ctx.probe.point("dispatch.after_answer")
    parts = _parts(tried, account)
    if tried.ended == "answer":
        held = routed_mode(ctx.settings, account, frozen) == "confirm"
        tried = Tried("empty" if not parts else "draft" if held else "answer", tried.answer)
    outcome = after(
        tried.ended,
        idempotent=harness.idempotent,
        probing=probing,
        after_s=tried.after_s,
        open_s=settings.breaker.open_s,
        error=tried.error,
    )
    move = _ended(ctx, seen, outcome, frozen, account)
    if isinstance(move.end, tuple) or move.to != "due":
        move.drop.append("url")
    if isinstance(outcome, Park):
        out = f"{seen.id}-{seen.step}"
        move.fields["out"] = out
        move.lane_state = "answered"
        move.creates.append(
            outbound.record(
                out, account, frozen.target, parts, "answer", ctx.now_ms(),
                parent=seen.id, sender_id=frozen.sender_id, role=frozen.role,
            )
        )  # fmt: skip
    _breaker(move, tried, harness_name, settings.breaker.failures, settings.breaker.open_s, probing)
    return move


def recovered(ctx: Context, seen: Seen) -> Move:
    """The move of a running turn whose worker died; the keeper applies it."""
    try:
        frozen = facts.frozen_of(ctx, seen)
    except FrozenMismatch as error:
        return outcome_move(ctx, "dispatch", seen, Dead("frozen-mismatch", str(error)))
    account = ctx.account(frozen.account)
    known = harness_settings(ctx.settings, frozen.harness) is not None
    result = policy.recovered(
        url=seen.get("url") if known else "",
        idempotent=known and ctx.harness(frozen.harness).idempotent,
        cancelled=bool(seen.get("cancel")),
    )
    if seen.takeovers > ctx.settings.pipeline.max_takeovers:
        result = Dead("crash-loop", "workers died on it again and again")
    if account is None:
        return outcome_move(ctx, "dispatch", seen, result, back="dispatch")
    return _ended(ctx, seen, result, frozen, account)


def _ended(ctx: Context, seen: Seen, outcome: Outcome, frozen: FrozenTurn, account: AccountSettings) -> Move:
    move = outcome_move(ctx, "dispatch", seen, outcome, back="dispatch", evidence=(("provenance", frozen.provenance),))
    if isinstance(outcome, Retry):
        move.lane_state = "ready"
        if move.end is None:
            metrics.count_retry("dispatch", outcome.reason)
    notices.failure(move, frozen, account, ctx.settings, ctx.now_ms())
    return move


def _parts(tried: Tried, account: AccountSettings) -> list[Part]:
    """The answer's parts as they will be sent; a question is shown as text until it can be answered as one."""
    if tried.answer is None:
        return []
    parts = list(tried.answer.parts)
    if tried.answer.question is not None:
        question = tried.answer.question
        options = [f"{n}. {option}" for n, option in enumerate(question.options, 1)]
        parts.append(Part("text", "\n".join((question.text, *options))))
    return outbound.planned(account, parts)


def _breaker(move: Move, tried: Tried, harness: str, failures: int, open_s: float, probing: bool) -> None:
    if tried.ended in ("answer", "empty", "draft", "refused"):
        move.breaker = {"harness": harness, "event": "ok", "probe": probing}
    elif tried.ended in ("transient", "broken"):
        move.breaker = {
            "harness": harness, "event": "fail", "failures": failures, "open_ms": int(open_s * 1000), "probe": probing,
        }  # fmt: skip
