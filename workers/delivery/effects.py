"""The delivery stage at work: one outbound record, part by part, an intent before each send, a result after it."""

from shared import metrics
from shared.beats import Hold
from shared.channels.port import Channel, Delivery, Part, Target
from shared.index import IndexEntry, OutboundIndex
from shared.outcome import Dead, Finish, Outcome, Park, Retry
from shared.settings import AccountSettings
from shared.switches import audit_command
from workers import outbound
from workers.apply import Seen, insisted, outcome_move
from workers.bulkhead import Full, account_call, send_rates
from workers.context import Context, channel_of
from workers.delivery import facts
from workers.delivery.policy import after, can_send, next_part, waited_too_long
from workers.moves import Move

SEND_S = 30.0
"""A send that takes longer is cut off and unknown; every channel's own timeout is shorter."""


async def plan(ctx: Context, seen: Seen, hold: Hold) -> list[tuple[Seen, Move]]:
    """Send what can be sent now; the moves that this comes to, the turn's first, the record's own last."""
    account = ctx.account(seen.get("account"))
    if account is None:
        return ended(ctx, seen, Finish("ignored", "account.removed"))
    parts = outbound.parts_of(seen.get("parts"))
    target = outbound.target_from(seen.get("target"))
    while not hold.lost:
        wanted = next_part(facts.ledger(ctx, seen.id), len(parts))
        if wanted == "done":
            return ended(ctx, seen, Finish("answered", "sent"))
        if wanted == "unknown":
            return ended(ctx, seen, Dead("delivery-unknown", "a send was begun and its end is not known"))
        refusal = can_send(facts.sending(ctx, seen, account))
        if refusal is not None:
            return ended(ctx, seen, refusal)
        outcome = await _part(ctx, seen, hold, account, target, wanted, parts[wanted])
        if outcome is not None:
            return ended(ctx, seen, outcome)
    return []


async def _part(
    ctx: Context, seen: Seen, hold: Hold, account: AccountSettings, target: Target, number: int, part: Part
) -> Outcome | None:
    """Send one part once: rate, intent, send, result. None when it was sent."""
    channel = channel_of(account)
    rates = send_rates(ctx, account, target.chat_id, channel.limits)
    try:
        with account_call(ctx, account, hold.name, rates):
            # Read before the intent: from there on nothing may fail but the send.
            switches = ctx.switches.read()
            if switches.paused:
                return Park("pause", "paused")
            verdict = _ledger(ctx, seen, hold, number, "intent")
            if verdict == "lost":
                return None if hold.lost else Retry("lease-lost", 0, counts=False)
            if verdict != "yes":
                return Dead("delivery-unknown", "another worker has begun this send")
            ctx.probe.point("delivery.after_intent")
            if hold.lapse(ctx.clock.monotonic()):
                _ledger(ctx, seen, hold, number, "result", Delivery("not-sent", reason="lease-lost"))
                return None
            ctx.probe.point("send")
            nonce = f"{seen.id}-{number}"
            began_ms = ctx.now_ms()
            try:
                work = channel.send(target, part, nonce, account, ctx.api(account), switches.sending)
                delivery = await ctx.clock.wait_for(work, SEND_S)
            except TimeoutError:
                delivery = Delivery("unknown", reason="timeout")
            ctx.probe.point("delivery.after_send")
            await insisted(ctx, hold, lambda: _ledger(ctx, seen, hold, number, "result", delivery))
    except Full as wait:
        return Retry("rate-limited", wait.after_s, counts=False)
    if delivery.state == "sent":
        metrics.end_to_end.labels(account.channel).observe(max(ctx.now_ms() - int(seen.get("at")), 0) / 1000)
        entry = IndexEntry(target.chat_id, part.text, began_ms, ctx.now_ms(), delivery.ids)
        _keep(ctx, account, channel, nonce, entry)
    return after(delivery)


def _keep(ctx: Context, account: AccountSettings, channel: Channel, nonce: str, entry: IndexEntry) -> None:
    """Keep what was sent for later quotes, where the channel has an index and the account's policy reads it. What has
    no text could tell a quote nothing."""
    if channel.limits.keeps_index and account.quote_policy == "recover" and entry.text:
        ctx.probe.point("index.write")
        OutboundIndex(ctx.scripts, account.id, ctx.settings.index).keep(entry, ctx.now_ms(), nonce)


def _ledger(ctx: Context, seen: Seen, hold: Hold, number: int, op: str, delivery: Delivery | None = None) -> str:
    more = {} if delivery is None else {"state": delivery.state, "detail": ",".join(delivery.ids) or delivery.reason}
    return ctx.scripts.call(
        "ledger", ctx.now_ms(), op=op, id=seen.id, part=number, token=hold.token, holder=hold.name, **more
    )


def ended(ctx: Context, seen: Seen, outcome: Outcome) -> list[tuple[Seen, Move]]:
    """What an outcome means for the record and, when it ends, for the turn that waits for it."""
    parent = facts.parent(ctx, seen)
    if isinstance(outcome, Retry) and outcome.reason == "rate-limited" and _old(ctx, seen):
        outcome = Dead("gave-up", "the platform's rate limit never let it through")
    own = outcome_move(ctx, "delivery", seen, outcome)
    if own.end is None:
        if isinstance(outcome, Retry):
            metrics.count_retry("delivery", outcome.reason)
        return [(seen, own)]
    result = Dead("attempts-exhausted", outcome.reason) if isinstance(outcome, Retry) else outcome
    own = _ended_alone(seen, own)
    moves: list[tuple[Seen, Move]] = []
    if parent is not None and parent.get("place") == "parked:outbound":
        moves.append((parent, _turn(ctx, seen, parent, result)))
    if isinstance(result, Finish) and result.disposition == "skipped":
        whose = {"account": seen.get("account"), "channel": seen.get("channel")}
        own.effects.append(audit_command(ctx.keys, "skip", result.reason, ctx.now_ms(), **whose))
    return [*moves, (seen, own)]


def _ended_alone(seen: Seen, move: Move) -> Move:
    """The record's own end: kept whole when its turn is a dead letter, else only sent or not-sent."""
    disposition, reason, stage = move.end or ("answered", "sent", "delivery")
    word = (
        "sent" if disposition == "answered" else "dead" if disposition == "dead" and seen.get("parent") else "not-sent"
    )
    fields = {"log": move.fields["log"]} if "log" in move.fields else {}
    return Move(move.id, move.step, fields=fields, end=(word, reason, stage))


def _turn(ctx: Context, seen: Seen, parent: Seen, result: Outcome) -> Move:
    if isinstance(result, Finish) and result.disposition == "answered":
        result = Finish("answered", parent.get("why") or "sent")
    return outcome_move(ctx, "delivery", parent, result, evidence=(("outbound", seen.id),))


def _old(ctx: Context, seen: Seen) -> bool:
    return waited_too_long(ctx.now_ms(), int(seen.get("at")), ctx.settings.harness.give_up_s)
