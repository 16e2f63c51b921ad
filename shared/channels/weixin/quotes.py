"""What a Weixin message quotes. Pure: a text in the event, else the ids and times by which our own index is searched.

Nothing tells who wrote the quoted message, so no author is named.
"""

from shared.channels.port import Json
from shared.channels.reading import int_of, map_of, text_of
from shared.channels.weixin.content import moment_of, quoted_files_of, text_in, time_of, uint64_of
from shared.channels.weixin.limits import KNOWN_TYPES
from shared.message import Lookup, ReplyReference, UnavailableReason


def reference_of(items: list[dict[str, Json]], chat_id: str, now_ms: int | None) -> ReplyReference | None:
    """The quote of the first item that has one; any kind of item may (issue 48 of the official client).

    Only a text or a voice's transcript is explicit: a title says what was quoted, but not in its words (F-11).
    """
    quote = next((found for item in items if (found := map_of(item.get("ref_msg")))), None)
    if quote is None:
        return None
    quoted = map_of(quote.get("message_item"))
    ids = _ids(quote, quoted)
    text, title, files = text_in(quoted), text_of(quote.get("title")), quoted_files_of(quoted)
    explicit = bool(text.strip())
    content = text if explicit else title if title.strip() else None
    if content is not None or files:
        return ReplyReference(
            message_id=next(iter(ids), None),
            content=content,
            attachments=files,
            explicit_text=explicit,
            source="payload",
        )
    return _elsewhere(quoted, ids, chat_id, now_ms)


def _elsewhere(quoted: dict[str, Json], ids: tuple[str, ...], chat_id: str, now_ms: int | None) -> ReplyReference:
    """A quote that only the index or the history can tell; a kind that is not known is marked as such meanwhile."""
    reason: UnavailableReason | None = None if _is_known(quoted) else "unsupported"
    at_ms = _quoted_at(quoted, ids, now_ms)
    message_id = next(iter(ids), None)
    if message_id is None and at_ms is None:
        return ReplyReference(unavailable_reason=reason or "not-delivered")
    wanted = Lookup(via="index", chat_id=chat_id, message_id=message_id, keys=ids, quoted_at_ms=at_ms)
    return ReplyReference(message_id=message_id, unavailable_reason=reason, lookup=wanted)


def _ids(quote: dict[str, Json], quoted: dict[str, Json]) -> tuple[str, ...]:
    """The quoted message's own id, in both places where it may stand; an item's id ("v1:…") is no message's."""
    found = (uint64_of(quoted.get("msg_id")), uint64_of(quote.get("svr_id")))
    return tuple(dict.fromkeys(each for each in found if each))


def _quoted_at(quoted: dict[str, Json], ids: tuple[str, ...], now_ms: int | None) -> int | None:
    """The id's time first: the times of a quote are rounded to seconds, and may be 0."""
    decoded = (time_of(each, now_ms) for each in ids)
    written = (moment_of(quoted.get(key)) for key in ("create_time_ms", "update_time_ms"))
    return next((at_ms for at_ms in (*decoded, *written) if at_ms is not None), None)


def _is_known(quoted: dict[str, Json]) -> bool:
    kind = quoted.get("type")
    return kind is None or int_of(kind) in KNOWN_TYPES
