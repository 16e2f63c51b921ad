"""While she works: a sign that a turn runs (typing or a reaction), renewed until it ends, through the switches."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from redis import exceptions as redis_errors

from shared.channels.port import AckState, Target
from shared.errors import EffectUnknown, Malformed, Refused, Transient
from shared.settings import AccountSettings
from workers.context import Context, channel_of

EVERY_S = 4.0
"""Telegram shows `typing` for at most five seconds (core.telegram.org, sendChatAction); others do not mind."""


@asynccontextmanager
async def acknowledged(ctx: Context, account: AccountSettings, target: Target) -> AsyncGenerator[None]:
    """Show it while the block runs. A sign that fails harms nothing."""
    if account.ack == "none":
        yield
        return
    task = asyncio.create_task(_show(ctx, account, target))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        if account.ack == "reaction":
            await _once(ctx, account, target, "done")


async def _show(ctx: Context, account: AccountSettings, target: Target) -> None:
    while True:
        await _once(ctx, account, target, "working")
        await ctx.clock.sleep(EVERY_S)


async def _once(ctx: Context, account: AccountSettings, target: Target, state: AckState) -> None:
    # Neither the server nor the platform may cost the turn its answer: the sign comes again in a few seconds.
    with suppress(redis_errors.RedisError, OSError, Transient, EffectUnknown, Refused, Malformed):
        switches = ctx.switches.read()
        if switches.paused or switches.sending.refuses(account.channel) is not None:
            return
        await channel_of(account).acknowledge(target, state, account, ctx.api(account), switches.sending)
