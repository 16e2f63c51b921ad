"""Messages of a scenario: made from a `say`, and shown under the names that the fixtures' `expect` uses. Pure."""

from typing import Any

from shared.message import Attachment, Lookup, Message, Ocr, ReplyReference
from shared.reply import AUTHOR_NAME_MAX, ID_MAX, clean_line, reference_from_parts
from shared.settings import AccountSettings
from workers.ops.scenario.model import SaidQuote, Say

REPLY_ADDRESSES = ("telegram", "whatsapp")
"""Where a reply to the bot counts as addressed (behaviour.md, section 2, step 5; Q-37, Q-38)."""

LOOKUP_CHANNELS = ("feishu", "slack", "discord")
"""Where the quoted message is asked for by its id (behaviour.md, "Evidence by channel")."""

INDEX_CHANNELS = ("weixin", "dingtalk", "qq", "whatsapp")
"""The channels that keep an outbound index."""


def message_of(said: Say, account: AccountSettings, serial: int, now_ms: int) -> Message:
    """The normalised message of a `say`, cleaned like a real one.

    `serial` counts the said messages of the scenario: it names those that have no id of their own. `now_ms` (Unix ms)
    only shapes such an id where the platform's ids are times.
    """
    message_id = said.message_id or _invented_id(account.channel, serial, now_ms)
    private = said.chat_type == "private" if said.chat_type else said.chat == said.sender
    reply_to = None if said.reply_to is None else _quoted(said.reply_to, said, account)
    mentioned = said.mentions_bot or bool(account.all_self_ids.intersection(said.mentions))
    answers_bot = (
        account.channel in REPLY_ADDRESSES and reply_to is not None and reply_to.author_id in account.all_self_ids
    )
    return Message(
        channel=account.channel,
        account=account.id,
        message_id=message_id,
        keys=(f"{said.chat}:{message_id}",),
        chat_id=said.chat,
        chat_type="private" if private else "group",
        thread_id=said.thread,
        sender_id=said.sender,
        sender_name=clean_line(said.name or "")[:AUTHOR_NAME_MAX] or None,
        sender_is_bot=said.sender_is_bot,
        system=said.system,
        text=said.text,
        text_raw=said.text,
        mentions=said.mentions,
        mentions_bot=None if private else mentioned,
        mentions_all=said.mentions_all,
        self_known=bool(account.all_self_ids),
        addressed=not private and (mentioned or answers_bot),
        attachments=tuple(Attachment(kind=file["kind"], name=file.get("name")) for file in said.attachments),
        reply_to=reply_to,
        sent_at_ms=said.sent_ms,
        ocr=None if said.ocr is None else Ocr(**said.ocr),
    )


def normalised_of(message: Message) -> dict[str, Any]:
    """The message as `expect.normalised` names its keys; JSON values only."""
    shown: dict[str, Any] = message.model_dump(mode="json", exclude={"keys", "reply_to"})
    shown["dedupe_keys"] = list(message.keys)
    shown["session_thread"] = message.thread_id
    shown["kind"] = message.kind
    shown["reply_to"] = None if message.reply_to is None else _shown_quote(message.reply_to)
    return shown


def _shown_quote(reference: ReplyReference) -> dict[str, Any]:
    shown: dict[str, Any] = reference.model_dump(mode="json", exclude={"lookup"})
    shown["needs_lookup"] = reference.needs_lookup
    shown["lookup_via"] = reference.lookup.via if reference.lookup else None
    shown["selected_quote"] = reference.selected
    return shown


def _quoted(quote: SaidQuote, said: Say, account: AccountSettings) -> ReplyReference:
    """The reference of a `say`. Without content or a reason it is looked for by the channel's own evidence."""
    message_id = clean_line(quote.parts.get("message_id") or "")[:ID_MAX] or None
    wanted = None if quote.parts.get("unavailable_reason") else _lookup(quote, message_id, said, account)
    return reference_from_parts(quote.parts, lookup=wanted)


def _lookup(quote: SaidQuote, message_id: str | None, said: Say, account: AccountSettings) -> Lookup | None:
    keys = tuple(key for key in (message_id, *quote.keys) if key)
    if account.channel in LOOKUP_CHANNELS:
        if message_id is None:
            return None
        return Lookup(via="platform", chat_id=said.chat, message_id=message_id, thread_id=said.thread, keys=keys)
    if account.channel in INDEX_CHANNELS:
        return Lookup(via="index", chat_id=said.chat, message_id=message_id, keys=keys, quoted_at_ms=quote.sent_at_ms)
    if account.channel == "telegram" and quote.sent_at_ms is not None:
        return Lookup(via="history", chat_id=said.chat, message_id=message_id, quoted_at_ms=quote.sent_at_ms)
    return None


def _invented_id(channel: str, serial: int, now_ms: int) -> str:
    """An id of the platform's own shape, since a reply has to name it."""
    if channel == "telegram":
        return str(700_000 + serial)
    return f"{now_ms // 1000}.{serial:06d}" if channel == "slack" else f"said-{serial}"
