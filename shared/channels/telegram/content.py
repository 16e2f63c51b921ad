"""What a Telegram message says: text, files and authors. Pure; used for the current message and for the quoted one."""

from dataclasses import dataclass

from shared.channels.port import Json
from shared.channels.reading import id_of, int_of, map_of, maps_of, text_of
from shared.channels.telegram.limits import PLACEHOLDERS
from shared.message import Attachment, AttachmentKind, QuotedAttachment

DEPTH = 12
"""Levels of a rich message that are read; as for Feishu's cards (behaviour.md, section 3)."""

_FILES: tuple[tuple[str, AttachmentKind], ...] = (
    ("animation", "video"),
    ("document", "file"),
    ("audio", "audio"),
    ("voice", "audio"),
    ("video", "video"),
    ("video_note", "video"),
    ("live_photo", "image"),
)


@dataclass(frozen=True, slots=True)
class Author:
    """Who wrote a message: a person, a bot, or a chat that speaks for itself."""

    id: str | None
    name: str | None
    is_bot: bool


def name_of(user_or_chat: dict[str, Json]) -> str | None:
    """First and last name, else the title, else the user name."""
    parts = (text_of(user_or_chat.get("first_name")), text_of(user_or_chat.get("last_name")))
    full = " ".join(part for part in parts if part)
    return full or text_of(user_or_chat.get("title")) or text_of(user_or_chat.get("username")) or None


def author_of(message: dict[str, Json]) -> Author:
    """`from`, or `sender_chat` where `from` is absent or a placeholder: an anonymous admin is no bot (C-4)."""
    user = map_of(message.get("from"))
    chat = map_of(message.get("sender_chat"))
    user_id = id_of(user.get("id"))
    if chat and (user_id is None or user_id in PLACEHOLDERS):
        return Author(id_of(chat.get("id")), name_of(chat), is_bot=False)
    return Author(user_id, name_of(user), is_bot=user.get("is_bot") is True)


def body_of(message: dict[str, Json]) -> str:
    """Text, else caption, else the visible text of a rich message (Bot API 10.1)."""
    rich = map_of(message.get("rich_message"))
    return text_of(message.get("text")) or text_of(message.get("caption")) or _blocks(rich.get("blocks"), DEPTH)


def files_of(message: dict[str, Json]) -> tuple[Attachment, ...]:
    """The files of a message with the id that `fetch` needs. An animation also fills `document`: it counts once."""
    found: list[Attachment] = []
    if sizes := maps_of(message.get("photo")):
        largest = max(sizes, key=lambda size: (int_of(size.get("width")) or 0) * (int_of(size.get("height")) or 0))
        found.append(_file("image", largest))
    for key, kind in _FILES:
        if key == "document" and map_of(message.get("animation")):
            continue
        if item := map_of(message.get(key)):
            found.append(_file(kind, item))
    if sticker := map_of(message.get("sticker")):
        moving = sticker.get("is_animated") is True or sticker.get("is_video") is True
        found.append(_file("other" if moving else "image", sticker))
    return tuple(found)


def quoted_files_of(message: dict[str, Json]) -> tuple[QuotedAttachment, ...]:
    """The files of a quoted message: kind and name only."""
    return tuple(QuotedAttachment(kind=file.kind, name=file.name) for file in files_of(message))


def _file(kind: AttachmentKind, item: dict[str, Json]) -> Attachment:
    file_id = id_of(item.get("file_id"))
    return Attachment(
        kind=kind,
        name=text_of(item.get("file_name")) or None,
        media_type=text_of(item.get("mime_type")) or None,
        size=int_of(item.get("file_size")),
        ref={"file_id": file_id} if file_id else {},
    )


def _blocks(value: object, depth: int) -> str:
    if depth == 0:
        return ""
    return "\n".join(line for block in maps_of(value) if (line := _block(block, depth)))


def _block(block: dict[str, Json], depth: int) -> str:
    lines = [_rich(block.get("text"), depth), _blocks(block.get("blocks"), depth - 1)]
    for item in maps_of(block.get("items")):
        label = text_of(item.get("label"))
        inner = _blocks(item.get("blocks"), depth - 1) or _rich(item.get("text"), depth)
        lines.append(f"{label} {inner}".strip())
    return "\n".join(line for line in lines if line)


def _rich(value: object, depth: int) -> str:
    """A rich text: a string, a list of rich texts, or an object that holds one in `text`."""
    if isinstance(value, str):
        return text_of(value)
    if depth == 0:
        return ""
    if isinstance(value, list):
        return "".join(_rich(item, depth - 1) for item in list[object](value)[:1000])
    return _rich(map_of(value).get("text"), depth - 1)
