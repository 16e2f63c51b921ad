"""What a Feishu message quotes. Pure: events have ids only, the content comes from one message.get."""

from shared.channels.feishu.content import mentions_of, quoted_files_of, said_of
from shared.channels.feishu.limits import RECALLED_BODY
from shared.channels.port import Json
from shared.channels.reading import id_of, map_of, text_of
from shared.message import Lookup, ReplyReference


def quoted_id_of(message: dict[str, Json]) -> str | None:
    """The direct target, else the head of the chain (Q-56, Q-57). In a topic every message names the topic's head as
    both, which quotes nothing (C-16)."""
    own = id_of(message.get("message_id"))
    named = [found for key in ("parent_id", "root_id") if (found := id_of(message.get(key))) and found != own]
    if id_of(message.get("thread_id")) is not None and len(set(named)) < 2:
        return None
    return named[0] if named else None


def reference_of(message: dict[str, Json], chat_id: str) -> ReplyReference | None:
    """The quote of a message that was received, to be looked up."""
    quoted = quoted_id_of(message)
    if quoted is None:
        return None
    return ReplyReference(message_id=quoted, lookup=Lookup(via="platform", chat_id=chat_id, message_id=quoted))


def of_item(item: dict[str, Json], message_id: str) -> ReplyReference:
    """The reference to a message that message.get showed. The bot's own are named by its app id there."""
    sender = map_of(item.get("sender"))
    author = id_of(sender.get("id"))
    raw = text_of(map_of(item.get("body")).get("content"))
    if item.get("deleted") is True or raw == RECALLED_BODY:
        return ReplyReference(message_id=message_id, author_id=author, unavailable_reason="deleted", source="lookup")
    said = said_of(text_of(item.get("msg_type")), raw, mentions_of(item), frozenset(), message_id)
    files = quoted_files_of(said)
    readable = bool(said.text or files)
    return ReplyReference(
        message_id=message_id,
        author_id=author,
        author_name=text_of(sender.get("sender_name")) or None,
        content=said.text or None,
        attachments=files,
        unavailable_reason=None if readable else "unsupported",
        source="lookup",
    )
