"""Applying moves: the one call of `move.lua`, its verdicts, and what is counted and logged once a move stands."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import structlog
from redis import exceptions as redis_errors

from shared import metrics
from shared.beats import Hold
from shared.envelope import Envelope, NewerVersion, Unreadable
from shared.outcome import Dead, Finish, Forward, Outcome, Park, Retry, Stage
from shared.retry import next_retry_at
from workers.context import Context
from workers.moves import Move, Row, lanes, retention

log = structlog.get_logger()

SILENT_MAX = 1_000
"""Decisions about silenced messages kept per account; older ones are trimmed."""
SILENT = frozenset({"silenced", "duplicate", "ignored", "denied", "throttled", "skipped"})
"""Dispositions whose record is trimmed to an end mark and whose decision goes to the account's stream."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A record as a stage read it."""

    id: str
    fields: dict[str, str]

    @property
    def step(self) -> int:
        """The fence: how often it has moved."""
        return int(self.fields["step"])

    @property
    def attempt(self) -> int:
        """Tries that counted, 0 before the first."""
        return int(self.fields.get("attempt", 0))

    @property
    def takeovers(self) -> int:
        """How often a worker died on it."""
        return int(self.fields.get("takeovers", 0))

    def get(self, name: str) -> str:
        """A field, or ''."""
        return self.fields.get(name, "")


AGAIN_S = 0.5
"""Seconds between two tries to write a result down while the server does not answer, or takes no write."""
_NO_WRITES = ("MISCONF", "NOREPLICAS")
"""How Redis begins its refusal of all writes while its disk is full and while too few replicas follow; a server that is
no primary (any more, or yet) has classes of its own in redis-py."""

T = TypeVar("T")


async def insisted(ctx: Context, hold: Hold, write: Callable[[], T]) -> T:
    """Write down what has happened outside already, again and again while the server does not answer or takes no write,
    and the hold is not lost; then raises redis errors. `write` must be the same call each time, its nonce included."""
    while True:
        try:
            return write()
        except redis_errors.RedisError as error:
            if hold.lost or not _passes(error):
                raise
            await ctx.clock.sleep(AGAIN_S)


def _passes(error: Exception) -> bool:
    """True for what says something of the server's state and nothing of the call."""
    if isinstance(error, redis_errors.ResponseError):
        no_primary = isinstance(error, redis_errors.ReadOnlyError | redis_errors.MasterDownError)
        return no_primary or str(error).startswith(_NO_WRITES)
    return isinstance(error, redis_errors.ConnectionError | redis_errors.TimeoutError)


class Applied(NamedTuple):
    """A verdict a move (`lost` for all when the claim is gone), and what the holder goes on with, as claim or start
    would reply it."""

    verdicts: list[str]
    following: list[Any]


def apply(
    ctx: Context,
    moves: Sequence[Move],
    *,
    holder: str = "",
    token: str = "",
    release: bool = False,
    nonce: str = "",
    following: Mapping[str, Any] | None = None,
) -> Applied:
    """Apply moves in one script. `nonce`: of a call that may have to be repeated. `following`: what the holder wants to
    go on with in the same step: its partition's next batch, or the next turn."""
    settings = ctx.settings
    tidy = {tuple(command): command for move in moves for command in move.tidy}
    verdicts, then = ctx.scripts.call(
        "move",
        ctx.now_ms(),
        holder=holder,
        token=token,
        release=release,
        nonce=nonce,
        moves=[m.as_argument() for m in moves],
        tidy=list(tidy.values()),
        next=following or False,
        **lanes(settings),
        **retention(settings),
    )
    return Applied(["lost"] * len(moves) if verdicts == ["lost"] else verdicts, then)


def outcome_move(
    ctx: Context,
    stage: Stage,
    seen: Seen,
    outcome: Outcome,
    *,
    evidence: Sequence[tuple[str, str | int | bool]] = (),
    back: str = "",
) -> Move:
    """The move that an outcome comes to, its decision row included; the stage's effects are added to it."""
    now = ctx.now_ms()
    move = Move(seen.id, seen.step)
    match outcome:
        case Forward(to, reason):
            move.to = to
            if reason and stage == "engagement":  # an answered message carries the gate's reason
                move.fields["why"] = reason
        case Park(why, reason):
            move.to = f"parked:{why}"
            move.fields["back"] = back or stage
        case Retry(reason, after_s, counts):
            attempt = seen.attempt + counts
            if attempt >= ctx.settings.pipeline.retry.attempts and counts:
                tried = Seen(seen.id, {**seen.fields, "attempt": str(attempt)})
                return outcome_move(ctx, stage, tried, Dead("attempts-exhausted", reason), evidence=evidence)
            move.to = "due"
            move.score = next_retry_at(now, max(attempt, 1), ctx.settings.pipeline.retry, ctx.rng, after_s)
            move.fields |= {"attempt": attempt, "back": back or stage}
        case Finish(disposition, reason):
            move.end = (disposition, reason, stage)
            if seen.get("replayed"):
                letter = ctx.keys.letter(seen.id)
                move.effects += [
                    ["HSET", letter, "status", "replayed"],
                    ["PEXPIRE", letter, retention(ctx.settings)["keep_ms"]],
                ]
        case Dead(reason, error):
            _bury(ctx, stage, seen, move, reason, error)
    row = Row(stage, _word(outcome), outcome.reason, now, seen.attempt, ctx.config.version, tuple(evidence))
    lines = seen.get("log")
    if not (isinstance(outcome, Retry | Park) and move.end is None and row.repeats(lines)):
        lines += f"{row.to_json()}\n"  # a wait that goes on and on is one row
    if move.end is not None and move.end[0] in SILENT:
        move.drop += ["log", "role", "why"]
        move.fields["silent"] = 1
    elif not ctx.server.lean():
        move.fields["log"] = lines
    if "silent" in move.fields and not ctx.server.lean():
        stream = ctx.keys.silent(seen.get("account"))
        move.effects.append(["XADD", stream, "MAXLEN", "~", SILENT_MAX, "*", "id", seen.id, "log", lines])
    return move


def _bury(ctx: Context, stage: Stage, seen: Seen, move: Move, reason: str, error: str) -> None:
    now, key = ctx.now_ms(), ctx.keys.letter(seen.id)
    move.end = ("dead", reason, stage)
    fields: list[str | int] = [
        "stage", stage, "reason", reason, "error", error[:500], "dead_at", now, "status", "dead",
        "account", seen.get("account"), "channel", seen.get("channel"), "worker", ctx.name, "attempts", seen.attempt,
        "out", seen.get("out"),
    ]  # fmt: skip
    move.effects += [
        ["HSET", key, *fields],
        ["HSETNX", key, "first_failed_at", now],
        ["PERSIST", key],
        ["ZADD", ctx.keys.letters(stage), now, seen.id],
    ]


def _word(outcome: Outcome) -> str:
    match outcome:
        case Forward():
            return "forward"
        case Park():
            return "park"
        case Retry():
            return "retry"
        case Finish(disposition, _):
            return disposition
        case Dead():
            return "dead"


def note(ctx: Context, stage: Stage, seen: Seen, move: Move) -> None:
    """Count and log a move that stands: one line a message a stage."""
    channel = seen.get("channel")
    outcome = "forward" if move.end is None else "dead" if move.end[0] == "dead" else "finish"
    if move.end is None and move.to == "due":
        outcome = "retry"
    elif move.end is None and move.to.startswith("parked:") and move.to != "parked:lane":
        outcome = "park"
    metrics.counter(metrics.stage_messages, stage, outcome).inc()
    if move.end is not None:
        disposition, reason, _ = move.end
        if seen.get("kind") != "out":
            metrics.counter(metrics.dispositions, channel, disposition).inc()
        if disposition == "dead":
            metrics.count_dead(stage, reason)
        level = "warning" if disposition == "dead" else "debug" if disposition in SILENT else "info"
        getattr(log, level)(
            "stage_done", stage=stage, envelope=seen.id, channel=channel, account=seen.get("account"),
            outcome=disposition, reason=reason,
        )  # fmt: skip
        ctx.probe.point("ended", seen.id)
    else:
        log.debug("stage_done", stage=stage, envelope=seen.id, channel=channel, outcome=outcome, to=move.to)


NEWER_RETRY_S = 5.0
"""An envelope of a newer version is looked at again after this long."""


def read_envelope(ctx: Context, stage: Stage, seen: Seen, moves: list[Move]) -> Envelope | None:
    """The record's envelope; a record that cannot be read adds its own move and gives None."""
    try:
        return Envelope.from_json(seen.get("env"))
    except NewerVersion as error:
        age_s = (ctx.now_ms() - int(seen.get("at") or 0)) / 1000
        if age_s > ctx.settings.pipeline.newer_version_s:
            moves.append(outcome_move(ctx, stage, seen, Dead("newer-version", str(error))))
        else:
            moves.append(outcome_move(ctx, stage, seen, Retry("newer-version", NEWER_RETRY_S, counts=False)))
    except Unreadable as error:
        moves.append(outcome_move(ctx, stage, seen, Dead("unreadable", str(error))))
    return None
