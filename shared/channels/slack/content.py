"""What a Slack message says: text, files, authors and their ids. Pure; for current, looked-up and shared messages."""

import re

from shared.channels.port import Json
from shared.channels.reading import id_of, int_of, map_of, maps_of, text_of
from shared.message import Attachment, AttachmentKind, QuotedAttachment

DEPTH = 12
"""Levels of blocks that are read; as for Feishu's cards (behaviour.md, section 3)."""

_ENTITY = re.compile("&(amp|lt|gt);")
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">"}
_TS = re.compile(r"(\d{1,11})\.(\d{6})", re.ASCII)


def unescaped(text: str) -> str:
    """`&amp;` `&lt;` `&gt;` decoded, once."""
    return _ENTITY.sub(lambda found: _ENTITIES[found.group(1)], text)


def escaped(text: str) -> str:
    """The three characters that Slack gives a meaning. No ping of a channel, group or person survives it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def ms_of(ts: str | None) -> int | None:
    """The time in a message's ts, Unix milliseconds."""
    found = _TS.fullmatch(ts or "")
    return int(found.group(1)) * 1000 + int(found.group(2)) // 1000 if found else None


def body_of(message: dict[str, Json]) -> str:
    """The text, else the visible text of blocks, else that of attachments; entities decoded."""
    text = text_of(message.get("text"))
    if not text.strip():
        text = _blocks(message.get("blocks"), DEPTH) or text
    if not text.strip():
        lines = (text_of(item.get("text")) or text_of(item.get("fallback")) for item in maps_of(_legacy(message)))
        text = "\n".join(line for line in lines if line) or text
    return unescaped(text)


def files_of(message: dict[str, Json]) -> tuple[Attachment, ...]:
    """The files of a message, with the address that `fetch` checks and uses."""
    return tuple(_file(item) for item in maps_of(message.get("files")))


def quoted_files_of(message: dict[str, Json]) -> tuple[QuotedAttachment, ...]:
    """The files of a quoted message: kind and name only."""
    return tuple(QuotedAttachment(kind=file.kind, name=file.name) for file in files_of(message))


def author_name_of(message: dict[str, Json]) -> str | None:
    """A name where the message itself has one; names of people would need another call."""
    profile = map_of(message.get("user_profile"))
    return (
        text_of(profile.get("display_name"))
        or text_of(profile.get("real_name"))
        or text_of(message.get("username"))
        or text_of(map_of(message.get("bot_profile")).get("name"))
        or None
    )


def author_id_of(message: dict[str, Json]) -> str | None:
    """The user's id, else the bot's."""
    return id_of(message.get("user")) or id_of(message.get("bot_id"))


def is_share(attachment: dict[str, Json]) -> bool:
    """True for the snapshot of another message that Slack itself made: a forward or a pasted permalink."""
    return any(attachment.get(flag) is True for flag in ("is_share", "is_msg_unfurl", "is_reply_unfurl"))


def share_of(message: dict[str, Json]) -> dict[str, Json] | None:
    """The first shared message among the attachments."""
    return next((item for item in maps_of(message.get("attachments")) if is_share(item)), None)


def _legacy(message: dict[str, Json]) -> list[dict[str, Json]]:
    return [item for item in maps_of(message.get("attachments")) if not is_share(item)]


def _file(item: dict[str, Json]) -> Attachment:
    media_type = text_of(item.get("mimetype"))
    url = text_of(item.get("url_private_download")) or text_of(item.get("url_private"))
    heard = map_of(map_of(item.get("transcription")).get("preview"))
    complete = heard.get("has_more") is False
    return Attachment(
        kind=_kind(media_type),
        name=text_of(item.get("name")) or text_of(item.get("title")) or None,
        media_type=media_type or None,
        size=int_of(item.get("size")),
        transcript=(text_of(heard.get("content")) or None) if complete else None,
        ref={"url": url} if url else {},
    )


def _kind(media_type: str) -> AttachmentKind:
    match media_type.split("/")[0]:
        case "image":
            return "image"
        case "audio":
            return "audio"
        case "video":
            return "video"
        case _:
            return "file"


def _blocks(value: object, depth: int) -> str:
    return "\n".join(line for block in maps_of(value) if (line := _visible(block, depth)))


def _visible(block: dict[str, Json], depth: int) -> str:
    """Text of a block or element: `text` is a string or an object with one; `elements` and `fields` hold more."""
    if depth == 0:
        return ""
    own = block.get("text")
    text = text_of(own) if isinstance(own, str) else text_of(map_of(own).get("text"))
    joint = "" if block.get("type") in ("rich_text_section", "rich_text_quote", "rich_text_preformatted") else "\n"
    inner = [
        seen
        for key in ("elements", "fields")
        for item in maps_of(block.get(key))
        if (seen := _visible(item, depth - 1))
    ]
    return "\n".join(part for part in (text, joint.join(inner)) if part)
