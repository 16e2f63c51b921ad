"""What a Discord message quotes. Pure (behaviour.md, section 3, "Evidence by channel")."""

from shared.channels.discord.content import embeds_of, is_snowflake, name_of, quoted_files_of
from shared.channels.discord.limits import FORWARD, REPLIES
from shared.channels.port import Json
from shared.channels.reading import id_of, int_of, map_of, maps_of, text_of
from shared.message import Lookup, Provenance, ReplyReference


def reference_of(message: dict[str, Json], chat_id: str, own_id: str) -> ReplyReference | None:
    """The quote, or None: a reference alone is none, pins and crossposts have one too."""
    pointer = map_of(message.get("message_reference"))
    kind = int_of(pointer.get("type")) or 0
    if kind == FORWARD:
        return _of_forward(message, pointer)
    if not pointer or kind != 0 or (int_of(message.get("type")) or 0) not in REPLIES:
        return None
    message_id = id_of(pointer.get("message_id"))
    known = ReplyReference(message_id=message_id)
    elsewhere = id_of(pointer.get("channel_id")) not in (None, chat_id)
    if message_id is None or not is_snowflake(message_id) or message_id == own_id or elsewhere:
        return known.model_copy(update={"unavailable_reason": "not-found"})
    if "referenced_message" in message and message["referenced_message"] is None:
        return known.model_copy(update={"unavailable_reason": "deleted"})
    if quoted := map_of(message.get("referenced_message")):
        return of_message(quoted, chat_id, message_id, "payload")
    return known.model_copy(update={"lookup": Lookup(via="platform", chat_id=chat_id, message_id=message_id)})


def of_message(quoted: dict[str, Json], chat_id: str, message_id: str, source: Provenance) -> ReplyReference:
    """The reference to a message that Discord shows in full; another id or channel is not what was quoted.

    Without the intent MESSAGE_CONTENT other people's messages come blank: that is no empty message.
    """
    if id_of(quoted.get("id")) != message_id or id_of(quoted.get("channel_id")) != chat_id:
        return ReplyReference(message_id=message_id, unavailable_reason="not-found", source=source)
    author = map_of(quoted.get("author"))
    known = ReplyReference(message_id=message_id, author_id=id_of(author.get("id")), author_name=name_of(author))
    return _filled(known, quoted, source)


def _of_forward(message: dict[str, Json], pointer: dict[str, Json]) -> ReplyReference:
    """A forward's snapshot has no author, and its channel may be one that the bot cannot read: never looked up."""
    snapshots = maps_of(message.get("message_snapshots"), 1)
    snapshot = map_of(snapshots[0].get("message")) if snapshots else {}
    known = ReplyReference(
        message_id=id_of(pointer.get("message_id")),
        reference_kind="forward",
        source_chat_id=id_of(pointer.get("channel_id")),
    )
    return _filled(known, snapshot, "payload")


def _filled(known: ReplyReference, quoted: dict[str, Json], source: Provenance) -> ReplyReference:
    content, files = text_of(quoted.get("content")), quoted_files_of(quoted)
    if content.strip() or files or embeds_of(quoted):
        readable = source == "payload" and bool(content.strip())
        return known.model_copy(
            update={"content": content, "attachments": files, "explicit_text": readable, "source": source}
        )
    unreadable = any(quoted.get(key) for key in ("poll", "components", "message_snapshots"))
    return known.model_copy(
        update={"unavailable_reason": "unsupported" if unreadable else "not-delivered", "source": source}
    )
