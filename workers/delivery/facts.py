"""What delivery reads: the record, its ledger, its turn, the switches and access as they stand now."""

from typing import cast

from shared.admission import admits_sender
from shared.settings import AccountSettings
from workers.apply import Seen
from workers.context import Context
from workers.delivery.policy import LedgerState, SendFacts
from workers.outbound import target_from


def ledger(ctx: Context, id_: str) -> dict[int, LedgerState]:
    """The state of each part that has one."""
    raw: dict[str, str] = ctx.client.hgetall(ctx.keys.ledger(id_))
    return {int(part): cast("LedgerState", value.split("|", 1)[0]) for part, value in raw.items()}


def sending(ctx: Context, seen: Seen, account: AccountSettings) -> SendFacts:
    """What `can_send` needs, read afresh before every part. A record that stands alone answers nobody's turn: only a
    turn's reply is bound to its asker's access."""
    switches = ctx.switches.read()
    target = target_from(seen.get("target"))
    sender = seen.get("sender")
    return SendFacts(
        paused=switches.paused,
        read_only=switches.read_only,
        safe_mode=switches.safe_mode,
        admitted=not seen.get("parent") or admits_sender(sender, target.chat_type, target.chat_id, account),
        exempt=account.channel == "mock",
    )


def parent(ctx: Context, seen: Seen) -> Seen | None:
    """The turn that waits for this record."""
    id_ = seen.get("parent")
    fields: dict[str, str] = ctx.client.hgetall(ctx.keys.record(id_)) if id_ else {}
    return Seen(id_, fields) if fields else None
