"""What a Slack message quotes. Pure: the root of its thread by id only, or a snapshot that Slack itself made."""

from shared.channels.port import Json
from shared.channels.reading import id_of, map_of, maps_of, text_of
from shared.channels.slack.content import (
    author_id_of,
    author_name_of,
    body_of,
    quoted_files_of,
    share_of,
)
from shared.channels.slack.limits import SLACKBOT
from shared.message import Lookup, Provenance, ReplyReference


def thread_of(event: dict[str, Json]) -> str | None:
    """The root's ts for a message inside a thread; the root itself is not inside (Q-53)."""
    thread_ts = id_of(event.get("thread_ts"))
    return None if thread_ts == id_of(event.get("ts")) else thread_ts


def reference_of(event: dict[str, Json], channel: str, ts: str) -> ReplyReference | None:
    """A share, else the root of the thread, inline or to be looked up. An assistant's thread quotes nothing (C-8)."""
    if (share := share_of(event)) is not None:
        return _of_share(share)
    thread_ts = thread_of(event)
    if thread_ts is None or thread_ts == ts or "assistant_thread" in event:
        return None
    root = map_of(event.get("root"))
    if id_of(root.get("ts")) == thread_ts:
        return of_message(root, thread_ts, "payload")
    author = id_of(event.get("parent_user_id"))
    return ReplyReference(
        message_id=thread_ts,
        author_id=None if author == SLACKBOT else author,
        lookup=Lookup(via="platform", chat_id=channel, message_id=thread_ts, thread_id=thread_ts),
    )


def of_message(root: dict[str, Json], ts: str, source: Provenance) -> ReplyReference | None:
    """The reference to a message that Slack shows in full; None for the root of an assistant's thread.

    A deleted root stays as a tombstone by Slackbot, whose filler text is nobody's.
    """
    if root.get("subtype") == "assistant_app_thread":
        return None
    if root.get("subtype") == "tombstone":
        return ReplyReference(message_id=ts, unavailable_reason="deleted", source=source)
    body, files = body_of(root), quoted_files_of(root)
    readable = bool(body.strip() or files)
    return ReplyReference(
        message_id=ts,
        author_id=author_id_of(root),
        author_name=author_name_of(root),
        content=body if readable else None,
        attachments=files,
        unavailable_reason=None if readable else "unsupported",
        explicit_text=source == "payload" and bool(body.strip()),
        source=source,
    )


def _of_share(share: dict[str, Json]) -> ReplyReference:
    """A forward: the snapshot may come from a channel that the bot cannot read, so it is never looked up."""
    body, files = body_of(share), quoted_files_of(share)
    if not body.strip():
        body = "\n".join(_message_blocks(share))
    readable = bool(body.strip() or files)
    return ReplyReference(
        message_id=id_of(share.get("ts")),
        author_id=id_of(share.get("author_id")),
        author_name=text_of(share.get("author_name")) or text_of(share.get("author_subname")) or None,
        content=body if body.strip() else None,
        attachments=files,
        unavailable_reason=None if readable else "unsupported",
        explicit_text=bool(body.strip()),
        source="payload" if readable else "none",
        reference_kind="forward",
        source_chat_id=id_of(share.get("channel_id")),
    )


def _message_blocks(share: dict[str, Json]) -> list[str]:
    found = (body_of(map_of(item.get("message"))) for item in maps_of(share.get("message_blocks")))
    return [text for text in found if text.strip()]
