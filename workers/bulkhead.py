"""Bulkheads: an account makes a bounded number of platform calls at once, at its platform's rate, over all workers."""

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress

from redis import exceptions as redis_errors

from shared.channels.port import Limits
from shared.settings import AccountSettings
from workers.context import Context

BUSY_MS = 60_000
"""How long a call whose worker died still counts at most: longer than any platform call may take. A takeover of the
claim that the call was made under, whose name is the call's `member`, ends it sooner."""


class Full(Exception):
    """No call may start now; `after_s` says when to look again, in seconds."""

    def __init__(self, after_s: float) -> None:
        super().__init__("the account has as many calls under way as it may")
        self.after_s = after_s


@contextmanager
def account_call(
    ctx: Context, account: AccountSettings, member: str, rates: Sequence[tuple[str, int, int]] = ()
) -> Generator[None]:
    """One platform call of an account, made under the claim named `member`.

    Raises Full instead of waiting: waits belong to `due`, never to a thread.
    """
    busy = ctx.keys.busy(account.id)
    wait_ms = int(
        ctx.scripts.call(
            "admit",
            ctx.now_ms(),
            rates=[list(r) for r in rates],
            busy=busy,
            member=member,
            most=ctx.settings.pipeline.account_concurrency,
            busy_ms=BUSY_MS,
        )
    )
    if wait_ms:
        raise Full(wait_ms / 1000)
    try:
        yield
    finally:
        with suppress(redis_errors.RedisError):  # it ends by itself, and what the call came to must not be lost over it
            ctx.client.zrem(busy, member)


def send_rates(ctx: Context, account: AccountSettings, chat_id: str, limits: Limits) -> list[tuple[str, int, int]]:
    """The two rates of a send, as (key, milliseconds between two, milliseconds of burst)."""
    rows = ((f"chat:{chat_id}", limits.per_chat), ("account", limits.per_account))
    rates: list[tuple[str, int, int]] = []
    for what, (messages, seconds) in rows:
        interval_ms = math.ceil(seconds * 1000 / messages)  # rounded up: never faster than the platform allows
        rates.append((ctx.keys.rate(account.id, what), interval_ms, interval_ms * (messages - 1)))
    return rates
