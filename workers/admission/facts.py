"""What admission reads: for a whole batch of one partition, in as few commands as the batch allows."""

from collections.abc import Iterable, Sequence
from typing import cast

from shared.settings import AccountSettings
from workers.admission.commands import LaneView, TurnState, command_of
from workers.admission.policy import BotRun, Claim, Item, World, bot_run_of
from workers.claimed import Claimed
from workers.context import Context
from workers.moves import QUEUED

WARNED = ":w"
"""Behind a run's name: the field that says that its limit was reported."""


def read(ctx: Context, account: AccountSettings, items: Sequence[Item], claimed: Claimed) -> World:
    """The world of one account's messages in a batch. That nobody holds a key is assumed at first: the move claims all
    keys of a message or none, and where it finds one held the message is decided again, knowing who holds it."""
    return World(
        account=account,
        read_only=claimed.switches.read_only,
        claims=_claims(ctx, account, items, again=claimed.again),
        bot_runs=_bot_runs(ctx, account, items),
        lanes={i.lane: _lane(ctx, i.lane) for i in items if command_of(i.envelope.message, account) is not None},
    )


def _claims(ctx: Context, account: AccountSettings, items: Sequence[Item], *, again: bool) -> dict[str, Claim]:
    messages = [item.envelope.message for item in items]
    keys = list(dict.fromkeys(k for m in messages for k in m.keys if again or k in m.windows))
    passing = {k for m in messages for k in m.windows}
    held = ctx.client.mget([ctx.keys.claim(account.id, k) for k in keys]) if keys else []
    return {k: _read(v, k in passing) for k, v in zip(keys, held, strict=True) if v}


def _read(stored: str, passing: bool) -> Claim:
    envelope_id, identity = stored.split("|", 1)
    if not passing:
        return Claim(envelope_id, identity)
    identity, at_ms = identity.rsplit("|", 1)
    return Claim(envelope_id, identity, int(at_ms))


def _bot_runs(ctx: Context, account: AccountSettings, items: Iterable[Item]) -> dict[str, BotRun]:
    if not account.answer_bots:
        return {}
    runs = list(dict.fromkeys(bot_run_of(i.envelope.message) for i in items))
    fields = [f for run in runs for f in (run, f"{run}{WARNED}")]
    stored = iter(ctx.client.hmget(ctx.keys.bot_runs(account.id), fields))
    found = {run: BotRun(max(int(next(stored) or 0), 0), next(stored) == "1") for run in runs}
    return {run: state for run, state in found.items() if state != BotRun()}


def _lane(ctx: Context, lane: str) -> LaneView:
    with ctx.client.pipeline(transaction=False) as pipe:
        pipe.hmget(ctx.keys.lane(lane), "current", "state")
        pipe.zcard(ctx.keys.lane(lane, "ready"))
        pipe.zcard(ctx.keys.lane(lane, "pending"))
        (current, state), ready, pending = pipe.execute()
    if current is None or state == QUEUED:  # in line, but nobody was asked yet
        return LaneView(waiting=ready + pending + (current is not None))
    return LaneView(
        current=current,
        state=cast("TurnState", state) if state else None,
        asker=ctx.client.hget(ctx.keys.record(current), "sender") or None,
        pending_interaction=state == "waiting",
        waiting=ready + pending,
    )
