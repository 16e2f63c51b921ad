"""What dispatch reads: the frozen input, the session, and the answer of the harness itself."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

import structlog
from redis import exceptions as redis_errors

from shared.beats import Hold
from shared.errors import EffectUnknown, Transient
from shared.frozen import FrozenMismatch, FrozenTurn
from shared.harness.port import (
    Answer,
    ContextRow,
    Harness,
    HarnessRefused,
    Turn,
    TurnAccepted,
    TurnAttachment,
    TurnEvent,
)
from workers.apply import Seen
from workers.context import Context
from workers.dispatch.policy import Ended

T = TypeVar("T")
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Tried:
    """How one try ended; `after_s` is what the harness asked for, `error` its class and text, never message text."""

    ended: Ended
    answer: Answer | None = None
    after_s: float | None = None
    error: str = ""


class Interrupted(Exception):
    """The hold was lost, /stop came, or this process ends."""


def frozen(stored: str | None) -> FrozenTurn:
    """The turn's frozen input. Raises FrozenMismatch when it is missing or not what was written."""
    if stored is None:
        raise FrozenMismatch("the frozen input is gone")
    return FrozenTurn.decode(stored)


def turn_of(seen: Seen, frozen: FrozenTurn, session: str) -> Turn:
    """The turn as the harness gets it: everything from the frozen input, and the lane's session."""
    return Turn(
        id=seen.id,
        session=session,
        system=frozen.system,
        prompt=frozen.prompt,
        text=frozen.text,
        source=frozen.source,
        reply_to=frozen.reply_to,
        attachments=tuple(
            TurnAttachment(a["kind"], a.get("name"), unavailable=a.get("unavailable")) for a in frozen.attachments
        ),
        context=tuple(ContextRow(r.label, r.text, r.at_ms) for r in frozen.context),
        title=frozen.title,
        model=frozen.model,
        attempt=seen.attempt + 1,
    )


async def asked(ctx: Context, seen: Seen, turn: Turn, harness: Harness, hold: Hold, timeout_s: float) -> Tried:
    """Ask, or go on polling what another worker had started. Raises Interrupted when the hold was lost."""
    url = seen.get("url") or None

    def heard(event: TurnEvent) -> None:
        nonlocal url
        if isinstance(event, TurnAccepted):
            url = event.url
            try:
                ctx.client.hset(ctx.keys.record(seen.id), "url", event.url)
            except redis_errors.RedisError as error:
                # The turn goes on; only if this worker dies nobody can poll on.
                log.warning("turn_url_not_kept", envelope=seen.id, error=type(error).__name__)

    if ctx.server.quiet():  # the server restarted after this turn had been asked for: nothing starts yet
        return Tried("drain")
    work = harness.resume(turn, url, heard) if url else harness.ask(turn, heard)
    try:
        answer = await interruptible(ctx, hold, work, timeout_s)
    except TimeoutError:
        await harness.cancel(turn, url)
        return Tried("timeout", error="TimeoutError")
    except Interrupted:
        if hold.lost:
            raise
        if hold.interrupt == "stop":
            await harness.cancel(turn, url)
            return Tried("stop")
        return Tried("drain")
    except Transient as error:
        return Tried("transient", after_s=error.retry_after_s, error=_said(error))
    except EffectUnknown as error:
        return Tried("broken", error=_said(error))
    except HarnessRefused as error:
        return Tried("refused", error=_said(error))
    return Tried("answer", answer)


async def interruptible(ctx: Context, hold: Hold, work: Awaitable[T], seconds: float) -> T:
    """Await `work` at most `seconds`, or until the hold is interrupted (raises Interrupted)."""
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    hold.on_change = lambda: loop.call_soon_threadsafe(task.cancel)
    if hold.lapse(ctx.clock.monotonic()) or hold.interrupt:
        task.cancel()
    try:
        return await ctx.clock.wait_for(task, seconds)
    except asyncio.CancelledError:
        if hold.interrupt:
            raise Interrupted from None
        raise
    finally:
        hold.on_change = None


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]
