"""What a Telegram message quotes. Pure: the update carries all that bots ever get (behaviour.md, section 3)."""

from shared.channels.port import Json
from shared.channels.reading import id_of, map_of, seconds_as_ms, text_of
from shared.channels.telegram.content import Author, author_of, body_of, name_of, quoted_files_of
from shared.channels.telegram.limits import SERVICE_KEYS, UNREADABLE_KEYS
from shared.channels.telegram.mentions import Self
from shared.message import Lookup, ReplyReference


def is_implicit_root(message: dict[str, Json], reply: dict[str, Json]) -> bool:
    """True when `reply` is only the topic that the message lies in: the platform adds it to every message there.

    A supergroup without topics has the same ids on a real reply to the first message of a chain, so the ids alone
    are no proof; a channel post that opens a comment thread has real content and is kept as a quote.
    """
    if "forum_topic_created" in reply:
        return True
    same = id_of(reply.get("message_id")) == id_of(message.get("message_thread_id"))
    return same and message.get("is_topic_message") is True


def is_comment_on_post(message: dict[str, Json]) -> bool:
    """True for a comment that answers a linked channel's post directly: the thread is named by that post."""
    reply = map_of(message.get("reply_to_message"))
    same = id_of(reply.get("message_id")) == id_of(message.get("message_thread_id"))
    return same and reply.get("is_automatic_forward") is True


def reference_of(message: dict[str, Json], chat_id: str, thread_id: str | None, me: Self) -> ReplyReference | None:
    """The quote, or None. What the user marked by hand is `selected` (Q-46, Q-47)."""
    marked = map_of(message.get("quote"))
    quote = text_of(marked.get("text"))
    reply = map_of(message.get("reply_to_message"))
    if reply and not is_implicit_root(message, reply):
        return _of_reply(reply, quote, marked.get("is_manual") is True, chat_id, thread_id, me)
    if external := map_of(message.get("external_reply")):
        return _of_external(external, quote)
    if story := map_of(message.get("reply_to_story")):
        poster = map_of(story.get("chat"))
        return ReplyReference(
            author_id=id_of(poster.get("id")),
            author_name=name_of(poster),
            unavailable_reason="unsupported",
            reference_kind="story",
        )
    if quote.strip():  # the target is gone or unknown: it leaves no other trace, so nothing may be said about it
        return ReplyReference(content=quote, selected=quote, explicit_text=True, source="payload")
    return None


def _of_reply(
    reply: dict[str, Json], quote: str, manual: bool, chat_id: str, thread_id: str | None, me: Self
) -> ReplyReference:
    author = author_of(reply)
    message_id = id_of(reply.get("message_id"))
    body = body_of(reply)
    files = quoted_files_of(reply)
    content = body if body.strip() else quote
    known = ReplyReference(message_id=message_id, author_id=author.id, author_name=author.name)
    if content.strip() or files:
        selected = quote if quote.strip() and (manual or content == quote) else None
        return known.model_copy(
            update={
                "content": content if content.strip() else None,
                "selected": selected,
                "attachments": files,
                "explicit_text": bool(content.strip()),
                "source": "payload",
            }
        )
    if not (UNREADABLE_KEYS | SERVICE_KEYS).isdisjoint(reply):
        return known.model_copy(update={"unavailable_reason": "unsupported"})
    quoted_at_ms = seconds_as_ms(reply.get("date"))
    if quoted_at_ms is None or not _may_be_mine(reply, author, me):
        return known.model_copy(update={"unavailable_reason": "not-delivered"})
    wanted = Lookup(
        via="history", chat_id=chat_id, message_id=message_id, thread_id=thread_id, quoted_at_ms=quoted_at_ms
    )
    return known.model_copy(update={"lookup": wanted})


def _may_be_mine(reply: dict[str, Json], author: Author, me: Self) -> bool:
    """The history holds the bot's own replies only, so somebody else's message is never looked for there."""
    if author.id is None or me.is_self(map_of(reply.get("from"))):
        return True
    return author.is_bot and not me.ids


def _of_external(external: dict[str, Json], quote: str) -> ReplyReference:
    """A message of another chat or topic. Its id belongs there, and text comes only as the marked part."""
    origin = map_of(external.get("origin"))
    poster = next((found for key in ("sender_user", "sender_chat", "chat") if (found := map_of(origin.get(key)))), {})
    files = quoted_files_of(external)
    readable = bool(quote.strip())
    unreadable = not (UNREADABLE_KEYS | SERVICE_KEYS).isdisjoint(external)
    reference = ReplyReference(
        message_id=id_of(external.get("message_id")),
        author_id=id_of(poster.get("id")),
        author_name=name_of(poster) or text_of(origin.get("sender_user_name")) or None,
        attachments=files,
        source_chat_id=id_of(map_of(external.get("chat")).get("id")),
    )
    if readable:
        return reference.model_copy(
            update={"content": quote, "selected": quote, "explicit_text": True, "source": "payload"}
        )
    if files:
        return reference.model_copy(update={"source": "payload"})
    return reference.model_copy(update={"unavailable_reason": "unsupported" if unreadable else "not-delivered"})
