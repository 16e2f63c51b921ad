"""What a claim tells beside its records, read in the same step: so that no stage asks for it once more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shared.access import overlaid
from shared.redis.scripts import pairs
from shared.settings import AccountSettings
from shared.switches import State
from workers.context import Context


@dataclass(frozen=True, slots=True)
class Claimed:
    """Facts of the moment at which the claim was taken.

    switches: as this process must obey them; of judge, quotes and delivery as it knew them last, and `flat` is for the
    script that compares before anything is sent. overlays: access overlays by account. frozen, session, probing: of a
    started turn. again: some message of the batch is decided another time, because what was assumed did not hold.
    """

    switches: State
    flat: tuple[str, ...] = ()
    overlays: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    frozen: str | None = None
    session: str = ""
    probing: bool = False
    again: bool = False

    def account(self, ctx: Context, account_id: str) -> AccountSettings | None:
        """An account with its overlay, or None where the configuration lost it."""
        account = ctx.settings.account(account_id)
        return None if account is None else overlaid(account, self.overlays.get(account_id, {}))


def of_batch(ctx: Context, reply: Sequence[Any], *, again: bool) -> Claimed:
    """From claim's reply."""
    overlays = {name: pairs(raw) for name, raw in zip(reply[3][::2], reply[3][1::2], strict=True)}
    return Claimed(ctx.switches.obeyed(reply[2]), overlays=overlays, again=again)


def of_one(ctx: Context, reply: Sequence[Any], account_id: str) -> Claimed:
    """From take's reply."""
    switches, flat = ctx.switches.last()
    return Claimed(switches, flat, {account_id: pairs(reply[3])})


def of_turn(ctx: Context, reply: Sequence[Any]) -> Claimed:
    """From start's reply."""
    switches = ctx.switches.obeyed(reply[7])
    return Claimed(switches, frozen=reply[5], session=reply[6], probing=reply[3] == "probe")
