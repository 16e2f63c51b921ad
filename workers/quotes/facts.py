"""What the quotes stage reads: the platform, the outbound index, the bound session's history, and access as it is."""

from dataclasses import dataclass

from shared.admission import admits, role_of
from shared.envelope import Envelope
from shared.errors import EffectUnknown, Malformed, Refused, Transient
from shared.harness.port import HarnessRefused, HistoryLine
from shared.index import OutboundIndex
from shared.message import Message, ReplyReference
from shared.settings import AccountSettings
from workers.context import Context, channel_of, routed
from workers.quotes.policy import after_index, found_in_history, ids_of, next_step, read_on, restored, unresolved

LOOKUP_S = 5.0
"""A platform lookup has 5 s (behaviour.md, section 3, Errors)."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The quote as good as it gets, and whether the platform vouches for the message itself."""

    reference: ReplyReference | None
    verified: bool
    fetched: bool


async def read(ctx: Context, envelope: Envelope, account: AccountSettings, lane: str, role: str) -> Evidence:
    """Ask what the policy says. Raises Transient when the source could not be verified."""
    message = envelope.message
    reference = message.reply_to
    match next_step(reference, account.quote_policy):
        case "platform" if reference is not None:
            reference = await _looked_up(ctx, message, reference, account)
        case "history" if reference is not None:
            reference = await _looked_back(ctx, message, reference, lane, role, account)
        case "index" if reference is not None:
            reference = await _from_index(ctx, message, reference, lane, role, account)
        case _:
            pass
    fetched = account.verify_source and message.channel in ("slack", "feishu", "discord")
    verified = True
    if fetched:
        ctx.probe.point("verify")
        work = channel_of(account).verify_source(message, account, ctx.api(account))
        verified = await ctx.clock.wait_for(work, LOOKUP_S)
    return Evidence(reference, verified, fetched)


def still_admitted(ctx: Context, message: Message) -> bool:
    """Access as it stands now, with the overlay read afresh."""
    account = ctx.account(message.account)
    return account is not None and admits(role_of(message, account), message, account)


async def _looked_up(
    ctx: Context, message: Message, reference: ReplyReference, account: AccountSettings
) -> ReplyReference:
    wanted = reference.lookup
    if wanted is None or wanted.chat_id != message.chat_id:
        return reference.model_copy(update={"lookup": None, "unavailable_reason": "not-found"})
    ctx.probe.point("lookup")
    try:
        work = channel_of(account).lookup(wanted, message, account, ctx.api(account))
        return await ctx.clock.wait_for(work, LOOKUP_S)
    except (TimeoutError, Transient, EffectUnknown, Refused, Malformed):
        return unresolved(reference)


async def _from_index(
    ctx: Context, message: Message, reference: ReplyReference, lane: str, role: str, account: AccountSettings
) -> ReplyReference:
    wanted = reference.lookup
    if wanted is None:
        return unresolved(reference)
    ctx.probe.point("index.read")
    index = OutboundIndex(ctx.scripts, account.id, ctx.settings.index)
    found = index.find(message.chat_id, ids_of(wanted), wanted.quoted_at_ms, ctx.now_ms())
    match after_index(found.hit, wanted.quoted_at_ms, looks_back=channel_of(account).limits.looks_back):
        case "found":
            return restored(reference, found.text, "index-id" if found.hit == "id" else "index-time")
        case "history":
            return await _looked_back(ctx, message, reference, lane, role, account)
        case "unresolved":
            return unresolved(reference)


async def _looked_back(
    ctx: Context, message: Message, reference: ReplyReference, lane: str, role: str, account: AccountSettings
) -> ReplyReference:
    wanted, session = reference.lookup, ctx.sessions.bound(lane)
    if wanted is None or wanted.quoted_at_ms is None or session is None:
        return unresolved(reference)
    try:
        work = _search(ctx, message, session, wanted.quoted_at_ms, role, account)
        text = await ctx.clock.wait_for(work, ctx.settings.lookback.budget_s)
    except (TimeoutError, Transient, EffectUnknown, HarnessRefused):
        text = None
    if text is None:
        return unresolved(reference)
    return restored(reference, text, "history")


async def _search(
    ctx: Context, message: Message, session: str, quoted_at_ms: int, role: str, account: AccountSettings
) -> str | None:
    limits = ctx.settings.lookback
    window_ms = int(limits.window_s * 1000)
    harness = ctx.harness(routed(ctx.settings, account, message, role).harness or "default")
    lines: list[HistoryLine] = []
    before_ms, ended = ctx.now_ms() + 1, False
    for _ in range(limits.pages):
        ctx.probe.point("history")
        page = await harness.history(session, before_ms, limits.page_size)
        lines += page.lines
        ended = not page.more
        if ended or not page.lines or not read_on(lines, quoted_at_ms, window_ms):
            break
        before_ms = min(line.at_ms for line in page.lines)
    return found_in_history(lines, ended, quoted_at_ms, window_ms)
