"""Dead letters in Redis: listed, shown, replayed, trimmed; and raw ones, which are no message of ours."""

import base64
import hashlib

from shared import metrics
from shared.outcome import STAGES
from workers.apply import Seen
from workers.context import Context
from workers.deadletters.model import Letter, why_not
from workers.moves import lanes, retention

RAW = "poison"
"""The stage under which raw letters are listed."""
REFUSALS = {
    "gone": "what it needs is no longer kept",
    "alive": "it is not dead any more",
    "full": "its conversation has as many turns waiting as it may; try again when some have ended",
    "busy": "its sender has another turn under way; try again when that has ended",
}
PAGE = 1_000
"""Letters looked at in one go."""


def poison(ctx: Context, raw: bytes, queue: str, reason: str) -> None:
    """Keep a Celery message that is not ours, with its bytes."""
    now = ctx.now_ms()
    id_ = f"raw-{hashlib.sha256(raw).hexdigest()[:20]}"
    fields: dict[str, str | int] = {
        "stage": RAW, "reason": "poison", "error": f"{queue}: {reason}", "dead_at": now, "status": "dead",
        "worker": ctx.name, "raw": base64.b64encode(raw).decode(),
    }  # fmt: skip
    with ctx.client.pipeline() as pipe:
        pipe.hset(ctx.keys.letter(id_), mapping=fields)
        pipe.hsetnx(ctx.keys.letter(id_), "first_failed_at", now)
        pipe.zadd(ctx.keys.letters(RAW), {id_: now})
        pipe.execute()
    stage = queue.removeprefix("wake.")
    if stage in STAGES:
        metrics.count_dead(stage, "poison")


def find(ctx: Context, stage: str = "", reason: str = "", channel: str = "", account: str = "") -> list[Letter]:
    """Letters that fit, oldest first."""
    found: list[Letter] = []
    for name in (stage,) if stage else (*STAGES, RAW):
        start = 0
        while ids := ctx.client.zrange(ctx.keys.letters(name), start, start + PAGE - 1):
            with ctx.client.pipeline(transaction=False) as pipe:
                for id_ in ids:
                    pipe.hgetall(ctx.keys.letter(id_))
                hashes = pipe.execute()
            found += [Letter.from_hash(i, h) for i, h in zip(ids, hashes, strict=True) if h]
            start += PAGE
    fitting = [letter for letter in found if letter.fits(stage, reason, channel, account)]
    return sorted(fitting, key=lambda letter: (letter.dead_at, letter.id))


def get(ctx: Context, id_: str) -> Letter | None:
    """One letter."""
    raw = ctx.client.hgetall(ctx.keys.letter(id_))
    return Letter.from_hash(id_, raw) if raw else None


def replay(ctx: Context, letter: Letter, who: str, *, again: bool = False) -> str | None:
    """Put a letter back to work where it died, in one step. Returns why not, or None when it was done.

    It passes the same guards as any message: a part that was sent stays sent, a frozen input stays frozen.
    """
    refusal = why_not(letter, again=again, max_replays=ctx.settings.dead_letters.max_replays)
    if refusal is not None:
        if letter.stage in STAGES:
            metrics.replays.labels(letter.stage, "refused").inc()
        return refusal
    ledger: dict[str, str] = ctx.client.hgetall(ctx.keys.ledger(letter.out)) if letter.out else {}
    reset = [part for part, value in ledger.items() if value.split("|", 1)[0] != "sent"]
    reply = ctx.scripts.call(
        "reopen",
        ctx.now_ms(),
        id=letter.id,
        to=letter.stage,
        reset=reset,
        letter=ctx.keys.letter(letter.id),
        index=ctx.keys.letters(letter.stage),
        keep_ms=retention(ctx.settings)["keep_ms"],
        lane_max=ctx.settings.pipeline.lane_max,
        **lanes(ctx.settings),
    )
    done = reply == "ok"
    if letter.stage in STAGES:
        metrics.replays.labels(letter.stage, "done" if done else "refused").inc()
    ctx.switches.audit("replay", letter.reason, ctx.now_ms(), who=who, envelope=letter.id, result=reply)
    return None if done else REFUSALS[reply]


def discard(ctx: Context, id_: str) -> None:
    """Let a letter go: what was kept for it gets its ordinary expiry."""
    keep = retention(ctx.settings)
    seen = Seen(id_, ctx.client.hgetall(ctx.keys.record(id_)))
    letter = get(ctx, id_)
    with ctx.client.pipeline() as pipe:
        pipe.delete(ctx.keys.letter(id_))
        pipe.zrem(ctx.keys.letters(letter.stage if letter else ""), id_)
        if seen.get("place") == "ended":
            pipe.hdel(ctx.keys.record(id_), "env")
            pipe.pexpire(ctx.keys.record(id_), keep["keep_ms"])
            pipe.pexpire(ctx.keys.frozen_of(seen.get("fkey")), keep["frozen_ms"])
            for dup in filter(None, seen.get("dups").split(",")):
                pipe.pexpire(ctx.keys.claim_of(dup), int(seen.get("dup_ms")))
            if out := seen.get("out"):
                pipe.pexpire(ctx.keys.ledger(out), keep["keep_ms"])
        pipe.execute()


def trim(ctx: Context) -> int:
    """Discard what is beyond the count or the age; returns how many."""
    settings, gone = ctx.settings.dead_letters, 0
    oldest = ctx.now_ms() - int(settings.max_age_days * 86_400_000)
    for stage in (*STAGES, RAW):
        key = ctx.keys.letters(stage)
        over = ctx.client.zcard(key) - settings.max_entries
        ids = set(ctx.client.zrangebyscore(key, "-inf", oldest, start=0, num=PAGE))
        if over > 0:
            ids |= set(ctx.client.zrange(key, 0, min(over, PAGE) - 1))
        for id_ in ids:
            discard(ctx, id_)
        gone += len(ids)
    return gone
