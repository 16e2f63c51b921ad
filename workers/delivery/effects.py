"""The delivery stage at work: one record, part by part, an intent before each send, a result after it."""

from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias, cast

from shared import metrics
from shared.beats import Hold
from shared.channels.port import Delivery, Part, Target
from shared.index import IndexEntry, OutboundIndex
from shared.outcome import Dead, Finish, Outcome, Retry
from shared.settings import AccountSettings
from shared.switches import State, audit_command
from workers import outbound
from workers.apply import Seen, insisted, outcome_move
from workers.bulkhead import BUSY_MS, send_rates
from workers.claimed import Claimed
from workers.context import Context, channel_of
from workers.delivery import facts
from workers.delivery.policy import LedgerState, after, can_send, next_part, waited_too_long, window_closed
from workers.moves import Command, Move

SEND_S = 30.0
"""A send that takes longer is cut off and unknown; every channel's own timeout is shorter."""
SENT = Finish("answered", "sent")
Refusal: TypeAlias = Outcome | Literal["again", "lost"] | None


@dataclass(slots=True)
class Job:
    """One record under its claim. `flat`: the switches as the server told them last. `began_ms`: of the last send."""

    ctx: Context
    seen: Seen
    hold: Hold
    account: AccountSettings
    target: Target
    switches: State
    flat: tuple[str, ...]
    began_ms: int = 0

    @property
    def out(self) -> str:
        """What the ledger and the platforms' idempotency keys are named by."""
        return self.seen.get("out")


async def plan(ctx: Context, seen: Seen, hold: Hold, claimed: Claimed) -> list[tuple[Seen, Move]]:
    """Send what can be sent now, and the move that this comes to; nothing when the claim was lost."""
    account = claimed.account(ctx, seen.get("account"))
    if account is None:
        return [(seen, ended(ctx, seen, Finish("ignored", "account.removed")))]
    target = outbound.target_from(seen.get("target"))
    job = Job(ctx, seen, hold, account, target, claimed.switches, claimed.flat)
    # Nothing was sent yet, it is assumed: the script that writes an intent knows better, and says so.
    parts, ledger = outbound.parts_of(seen.get("parts")), dict[int, LedgerState]()
    while not hold.lost:
        if ctx.server.quiet():  # the server restarted after this had been claimed: nothing is sent yet
            return [(seen, ended(ctx, seen, Retry("handed-back", 0, counts=False)))]
        wanted = next_part(ledger, len(parts))
        if wanted == "done":
            return [(seen, ended(ctx, seen, SENT))]
        if not isinstance(wanted, int):
            unknown = Dead("delivery-unknown", "a send was begun and its end is not known")
            return [(seen, ended(ctx, seen, unknown))]
        refusal: Refusal = can_send(facts.sending(seen, account, job.switches))
        if refusal is not None:  # it may have been so long ago
            job.switches, job.flat = ctx.switches.read(), ctx.switches.last()[1]
            refusal = can_send(facts.sending(seen, account, job.switches))
        refusal = refusal or _closed(job, wanted) or _intent(job, wanted, ledger)
        if refusal == "again":
            continue
        if refusal == "lost":
            break
        if refusal is not None:
            return [(seen, ended(ctx, seen, refusal))]
        delivery = await _send(job, wanted, parts[wanted])
        if delivery is None:
            break
        ledger[wanted] = delivery.state
        outcome = after(delivery, wanted)
        last = outcome is not None or next_part(ledger, len(parts)) == "done"
        if last and not channel_of(account).limits.keeps_index:
            move = ended(ctx, seen, outcome or SENT)
            # In the same step as the move: nothing can come between what was sent and what is known of it.
            move.result = _result(job, wanted, delivery)
            return [(seen, move)]
        await insisted(ctx, hold, partial(_write, job, wanted, delivery))
        if outcome is not None:
            return [(seen, ended(ctx, seen, outcome))]
        _keep(job, wanted, parts[wanted], delivery)
    return []


def _closed(job: Job, number: int) -> Outcome | None:
    """The end of an answer that the platform takes no more; what answers no message has no window."""
    if job.target.reply_to is None:
        return None
    limits = channel_of(job.account).limits
    return window_closed(limits, int(job.seen.get("at")), job.ctx.now_ms(), number)


def _intent(job: Job, number: int, ledger: dict[int, LedgerState]) -> Refusal:
    """Write the intent, at the account's rate. None when the part may be sent; `again` when switches or ledger are not
    what they were taken for and everything is to be looked at once more; `lost` when the claim is gone."""
    ctx, account = job.ctx, job.account
    reply = ctx.scripts.call(
        "send",
        ctx.now_ms(),
        out=job.out,
        part=number,
        token=job.hold.token,
        holder=job.hold.name,
        switches=job.flat,
        rates=send_rates(ctx, account, job.target.chat_id, channel_of(account).limits),
        busy=ctx.keys.busy(account.id),
        most=ctx.settings.pipeline.account_concurrency,
        busy_ms=BUSY_MS,
    )
    match reply[0]:
        case "yes":
            return None
        case "switched":
            job.switches, job.flat = ctx.switches.obeyed(reply[1]), tuple(reply[1])
            return "again"
        case "wait":
            return Retry("rate-limited", reply[1] / 1000, counts=False)
        case "lost":
            return "lost" if job.hold.lost else Retry("lease-lost", 0, counts=False)
        case state:
            ledger[number] = cast("LedgerState", state)
            return "again"


async def _send(job: Job, number: int, part: Part) -> Delivery | None:
    """Send one part whose intent stands. None when the claim was lost before its first byte."""
    ctx, account = job.ctx, job.account
    ctx.probe.point("delivery.after_intent")
    if job.hold.lapse(ctx.clock.monotonic()):
        _write(job, number, Delivery("not-sent", reason="lease-lost"))
        return None
    ctx.probe.point("send")
    job.began_ms = ctx.now_ms()
    try:
        work = channel_of(account).send(
            job.target, part, f"{job.out}-{number}", account, ctx.api(account), job.switches.sending
        )
        delivery = await ctx.clock.wait_for(work, SEND_S)
    except TimeoutError:
        delivery = Delivery("unknown", reason="timeout")
    ctx.probe.point("delivery.after_send")
    if delivery.state == "sent":
        took_ms = ctx.now_ms() - int(job.seen.get("at"))
        metrics.end_to_end.labels(account.channel).observe(max(took_ms, 0) / 1000)
    return delivery


def _keep(job: Job, number: int, part: Part, delivery: Delivery) -> None:
    """Keep what was sent for later quotes, where the channel has an index and the account's policy reads it. What has
    no text could tell a quote nothing."""
    ctx, account = job.ctx, job.account
    if channel_of(account).limits.keeps_index and account.quote_policy == "recover" and part.text:
        ctx.probe.point("index.write")
        now = ctx.now_ms()
        entry = IndexEntry(job.target.chat_id, part.text, job.began_ms, now, delivery.ids)
        OutboundIndex(ctx.scripts, account.id, ctx.settings.index).keep(entry, now, f"{job.out}-{number}")


def _result(job: Job, number: int, delivery: Delivery) -> Command:
    """What move.lua and ledger.lua are told of a send."""
    detail = ",".join(delivery.ids) or delivery.reason
    return [job.out, number, job.hold.token, delivery.state, detail, job.ctx.keys.busy(job.account.id)]


def _write(job: Job, number: int, delivery: Delivery) -> None:
    out, part, token, state, detail, busy = _result(job, number, delivery)
    job.ctx.scripts.call(
        "ledger", job.ctx.now_ms(), out=out, part=part, token=token, state=state, detail=detail, busy=busy,
        member=job.hold.name,
    )  # fmt: skip


def ended(ctx: Context, seen: Seen, outcome: Outcome) -> Move:
    """What an outcome means for the record: a turn ends as what became of its answer; what stands alone was sent or was
    not, and is nobody's dead letter a second time."""
    if isinstance(outcome, Retry) and outcome.reason == "rate-limited" and _old(ctx, seen):
        outcome = Dead("gave-up", "the platform's rate limit never let it through")
    if not facts.alone(seen) and outcome == SENT:
        outcome = Finish("answered", seen.get("why") or "sent")
    move = outcome_move(ctx, "delivery", seen, outcome, evidence=(("outbound", seen.get("out")),))
    if move.end is None:
        if isinstance(outcome, Retry):
            metrics.count_retry("delivery", outcome.reason)
        return move
    if isinstance(outcome, Finish) and outcome.disposition == "skipped":
        whose = {"account": seen.get("account"), "channel": seen.get("channel")}
        move.effects.append(audit_command(ctx.keys, "skip", outcome.reason, ctx.now_ms(), **whose))
    if facts.alone(seen):
        _, reason, stage = move.end
        fields = {"log": move.fields["log"]} if "log" in move.fields else {}
        audits = [e for e in move.effects if e[1] == ctx.keys.audit]
        word = "sent" if outcome == SENT else "not-sent"
        return Move(move.id, move.step, fields=fields, effects=audits, end=(word, reason, stage))
    return move


def _old(ctx: Context, seen: Seen) -> bool:
    return waited_too_long(ctx.now_ms(), int(seen.get("made")), ctx.settings.harness.give_up_s)
