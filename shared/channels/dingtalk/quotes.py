"""What a DingTalk message quotes. Pure: what the event holds, else ids and a time by which our index is searched."""

from shared.channels.dingtalk.content import (
    MEDIA,
    files_of,
    kind_of,
    moment_of,
    opened,
    record_of,
    rich_text_of,
    words_of,
)
from shared.channels.dingtalk.limits import PLACEHOLDER
from shared.channels.port import Json
from shared.channels.reading import id_of, map_of, text_of
from shared.message import Lookup, QuotedAttachment, ReplyReference

_READ = frozenset({"", "text", "richText", "chatRecord", "interactiveCard", "markdown", *MEDIA})


def reference_of(data: dict[str, Json], chat_id: str, me: frozenset[str]) -> ReplyReference | None:
    """The quote under `text` or, on rich texts, under `content`; None where the message says that it is no reply."""
    places = (map_of(opened(data.get(key))) for key in ("text", "content"))
    place = next((each for each in places if each.get("isReplyMsg") is True), None)
    if place is None:
        return None
    quoted = map_of(opened(place.get("repliedMsg")))
    message_id = id_of(quoted.get("msgId")) or id_of(data.get("originalMsgId"))
    author_id = id_of(quoted.get("senderId"))
    known = ReplyReference(
        message_id=message_id, author_id=author_id, author_name=text_of(quoted.get("senderNick")) or None
    )
    kind = kind_of(quoted)
    body = map_of(opened(quoted.get("content")))
    text = _text(kind, body, quoted.get("content"))
    files = tuple(QuotedAttachment(kind=each.kind, name=each.name) for each in files_of(kind, body))
    if text is not None or files:
        found = {"content": text, "attachments": files, "explicit_text": text is not None, "source": "payload"}
        return known.model_copy(update=found)
    if kind == "interactiveCard" and author_id is not None and author_id not in me:
        # A person's card is a document that was shared; only the bot's own cards are in our index.
        shared = (QuotedAttachment(kind="other"),)
        return known.model_copy(update={"attachments": shared, "unavailable_reason": "unsupported"})
    return _elsewhere(data, quoted, known, chat_id, unreadable=kind not in _READ)


def _elsewhere(
    data: dict[str, Json], quoted: dict[str, Json], known: ReplyReference, chat_id: str, *, unreadable: bool
) -> ReplyReference:
    """By the card's processQueryKey, which our own send was given, then by the message's id, then by time."""
    ids = (id_of(data.get("originalProcessQueryKey")), id_of(quoted.get("processQueryKey")), known.message_id)
    keys = tuple(dict.fromkeys(each for each in ids if each))
    at_ms = moment_of(quoted.get("createdAt"))
    if not keys and at_ms is None:
        reason = "unsupported" if unreadable else "not-delivered"
        return known.model_copy(update={"unavailable_reason": reason})
    wanted = Lookup(via="index", chat_id=chat_id, message_id=known.message_id, keys=keys, quoted_at_ms=at_ms)
    # The kind is said at once: it stays when the index knows nothing of the message.
    reason = "unsupported" if unreadable else None
    return known.model_copy(update={"lookup": wanted, "unavailable_reason": reason})


def _text(kind: str, body: dict[str, Json], written: object) -> str | None:
    """The quoted words, None where there are none; a card's placeholder is none."""
    match kind:
        case "richText":
            text = rich_text_of(body)
        case "chatRecord":
            text = record_of(body)
        case "audio":
            text = text_of(body.get("recognition"))
        case _ if kind in MEDIA:
            text = ""
        case _:
            text = words_of(body) if body else text_of(written)
    bare = text.strip()
    return text if bare and bare.casefold() != PLACEHOLDER else None
