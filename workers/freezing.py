"""Freezing: how a message's input becomes bytes that nothing changes any more, from engagement or from quotes."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

from redis import exceptions as redis_errors

from shared.envelope import Envelope
from shared.frozen import Row, compose
from shared.message import Message, ReplyReference, lane_of
from shared.settings import AccountSettings
from workers.apply import Seen
from workers.context import Context, routed, target_of
from workers.moves import Move, retention


def needs_quotes(message: Message, account: AccountSettings) -> bool:
    """False for what quotes nothing and carries no media on an account that does not verify sources: that is frozen in
    the engagement worker's move and skips the quotes queue (design, section 3)."""
    return message.reply_to is not None or bool(message.attachments) or account.verify_source


def context_of(ctx: Context, message: Message) -> list[Row]:
    """The newest rows of the conversation's log for the harness, oldest first; a private chat has none."""
    harness = ctx.settings.harness
    if message.chat_type == "private" or harness.context_messages <= 0:
        return []
    conversation = lane_of(message.account, message.chat_id, message.thread_id, None)
    stored = ctx.client.lrange(ctx.keys.log(conversation), 0, harness.context_messages - 1)
    return [Row.model_validate_json(row) for row in reversed(stored)]


def freeze(
    ctx: Context,
    seen: Seen,
    envelope: Envelope,
    role: str,
    account: AccountSettings,
    move: Move,
    *,
    reference: ReplyReference | None = None,
    context: Sequence[Row] = (),
    unavailable: Sequence[str | None] = (),
    verified: Literal["signature", "fetched"] = "signature",
    early: bool = False,
) -> None:
    """Let `move` write the frozen input, where none stands yet, and make the turn ready.

    early: it is written before the move, so that after a death in between the next worker finds it and asks no platform
    a second time. The move makes it last until the message has ended; one whose move never comes is no use to anybody.
    """
    message = envelope.message
    route = routed(ctx.settings, account, message, role)
    frozen = compose(
        envelope.id, message, role, account, ctx.settings, route, target_of(message),
        reference=reference, context=context, unavailable=unavailable, verified=verified,
    )  # fmt: skip
    key = ctx.keys.frozen(account.id, message.keys[0])
    move.freeze = (key, frozen.encode())
    if early:
        with suppress(redis_errors.OutOfMemoryError):  # the move may write at the limit: work goes on to its end
            ctx.client.set(key, frozen.encode(), nx=True, px=retention(ctx.settings)["frozen_ms"])
        move.effects.append(["PERSIST", key])
    ctx.probe.point("quotes.after_freeze")
    ready(ctx, seen, route.harness or "default", move)


def ready(ctx: Context, seen: Seen, harness: str, move: Move) -> None:
    """Let `move` make a frozen turn ready: it waits in its lane for dispatch."""
    move.to = "parked:lane"
    move.fields |= {"ready_at": ctx.now_ms(), "harness": harness, "back": "dispatch"}
