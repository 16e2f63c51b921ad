"""The quotes stage at work: one message, its quote resolved under the account's policy, its input frozen."""

import structlog

from shared import metrics
from shared.beats import Hold
from shared.envelope import Envelope
from shared.errors import Transient
from shared.frozen import FrozenMismatch, FrozenTurn
from shared.index import IndexEntry, OutboundIndex
from shared.logging import quoted_id_hash
from shared.message import ReplyReference
from shared.outcome import Dead, Finish, Forward, Outcome, Retry
from shared.reply import clean_reference
from shared.settings import AccountSettings
from workers import outbound
from workers.apply import Seen, outcome_move, read_envelope
from workers.bulkhead import Full, account_call
from workers.claimed import Claimed
from workers.context import Context, channel_of, target_of
from workers.freezing import context_of, freeze, ready
from workers.moves import Move
from workers.quotes import facts
from workers.quotes.policy import ids_of, outcome

log = structlog.get_logger()


async def plan(ctx: Context, seen: Seen, hold: Hold, claimed: Claimed) -> list[tuple[Seen, Move]]:
    """The move of one message: its quote resolved, its input frozen."""
    moves: list[Move] = []
    envelope = read_envelope(ctx, "quotes", seen, moves)
    if envelope is not None:
        moves.append(await _move(ctx, seen, envelope, claimed))
    return [(seen, move) for move in moves]


async def _move(ctx: Context, seen: Seen, envelope: Envelope, claimed: Claimed) -> Move:
    message = envelope.message
    account = claimed.account(ctx, message.account)
    if account is None:
        return outcome_move(ctx, "quotes", seen, Finish("ignored", "account.removed"))
    stored = ctx.client.get(ctx.keys.frozen(account.id, message.keys[0]))
    if stored is not None:
        return _frozen_before(ctx, seen, stored)
    try:
        with account_call(ctx, account, f"quotes:{seen.id}"):  # named as its claim
            evidence = await facts.read(ctx, envelope, account, seen.get("lane"), seen.get("role"))
    except Full as wait:
        return outcome_move(ctx, "quotes", seen, Retry("rate-limited", wait.after_s, counts=False))
    except (Transient, TimeoutError):
        return _unverified(ctx, seen)
    reference = None if evidence.reference is None else clean_reference(evidence.reference)
    admitted = facts.still_admitted(ctx, message)
    result = outcome(reference, account.quote_policy, admitted=admitted, verified=evidence.verified)
    if isinstance(result, Retry):
        return _unverified(ctx, seen)
    _tell(ctx, account, reference, result)
    move = outcome_move(ctx, "quotes", seen, result, evidence=_evidence(reference, evidence.fetched))
    if isinstance(result, Finish) and result.disposition == "replied":
        move.creates.append(
            outbound.fixed(
                f"{seen.id}-{seen.step}", "quoted_text_unavailable", {}, account, ctx.settings, target_of(message),
                message.text, ctx.now_ms(), purpose="replied",
            )
        )  # fmt: skip
    if isinstance(result, Forward):
        _keep(ctx, seen, envelope, account, reference)
        freeze(
            ctx, seen, envelope, seen.get("role"), account, move,
            reference=reference, context=context_of(ctx, message),
            verified="fetched" if evidence.fetched else "signature", early=True,
        )  # fmt: skip
    return move


def _keep(
    ctx: Context, seen: Seen, envelope: Envelope, account: AccountSettings, reference: ReplyReference | None
) -> None:
    """Write what the history told back into the outbound index, with the ids and the time by which the platform named
    it: the next quote of it is found there."""
    quoted = envelope.message.reply_to
    wanted = None if quoted is None else quoted.lookup
    if reference is None or reference.source != "history" or not reference.content or wanted is None:
        return
    if wanted.quoted_at_ms is None or not channel_of(account).limits.looks_back:
        return
    at_ms = wanted.quoted_at_ms
    entry = IndexEntry(envelope.message.chat_id, reference.content, at_ms, at_ms, ids_of(wanted))
    ctx.probe.point("index.write")
    OutboundIndex(ctx.scripts, account.id, ctx.settings.index).keep(entry, ctx.now_ms(), seen.id)


def _frozen_before(ctx: Context, seen: Seen, stored: str) -> Move:
    """A frozen input stands: whoever died after writing it is not asked again, and neither is the platform."""
    try:
        frozen = FrozenTurn.decode(stored)
    except FrozenMismatch as error:
        return outcome_move(ctx, "quotes", seen, Dead("frozen-mismatch", str(error)))
    move = outcome_move(ctx, "quotes", seen, Forward("dispatch"), evidence=(("provenance", frozen.provenance),))
    ready(ctx, seen, frozen.harness, move)
    move.effects.append(["PERSIST", ctx.keys.frozen_of(seen.get("fkey"))])
    return move


def _unverified(ctx: Context, seen: Seen) -> Move:
    """Not accepted, not frozen: tried again as transient, then dead under its own reason."""
    attempts = ctx.settings.pipeline.retry.attempts
    if seen.attempt + 1 >= attempts:
        return outcome_move(ctx, "quotes", seen, Dead("source-verification-failed"))
    return outcome_move(ctx, "quotes", seen, Retry("source-verification-failed"))


def _evidence(reference: ReplyReference | None, fetched: bool) -> list[tuple[str, str | int | bool]]:
    if reference is None:
        return [("fetched", fetched)] if fetched else []
    rows: list[tuple[str, str | int | bool]] = [("provenance", reference.source)]
    if reference.unavailable_reason:
        rows.append(("unavailable", reference.unavailable_reason))
    return [*rows, ("fetched", fetched)] if fetched else rows


def _tell(ctx: Context, account: AccountSettings, reference: ReplyReference | None, result: Outcome) -> None:
    if reference is None:
        return
    source = reference.source.split("-", maxsplit=1)[0]
    metrics.quote_resolutions.labels(
        account.channel,
        source if source != "none" else "payload",
        "unavailable" if reference.unavailable_reason else "ok",
    ).inc()
    fields = {"quoted_id_hash": quoted_id_hash(ctx.log_key, reference.message_id)} if reference.message_id else {}
    log.info(
        "quote_resolved", reason=result.reason, account=account.id, has_content=reference.content is not None,
        has_attachments=bool(reference.attachments), unavailable=reference.unavailable_reason is not None, **fields,
    )  # fmt: skip
