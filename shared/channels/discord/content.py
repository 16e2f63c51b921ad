"""What a Discord message says: text, files, author. Pure; for current, quoted and looked-up messages."""

from datetime import datetime

from shared.channels.port import Json
from shared.channels.reading import int_of, map_of, maps_of, text_of
from shared.message import Attachment, AttachmentKind, QuotedAttachment


def name_of(user: dict[str, Json]) -> str | None:
    """The name that the user shows, else the account's."""
    return text_of(user.get("global_name")) or text_of(user.get("username")) or None


def is_snowflake(value: str) -> bool:
    """True for an id of Discord's: up to 20 digits. Anything else must not become part of an address."""
    return value.isascii() and value.isdigit() and len(value) <= 20


def files_of(message: dict[str, Json]) -> tuple[Attachment, ...]:
    """Attachments, with the address that `fetch` checks and uses; stickers by their name only."""
    files = [_file(item) for item in maps_of(message.get("attachments"))]
    stickers = maps_of(message.get("sticker_items"))
    return (*files, *(Attachment(kind="other", name=text_of(item.get("name")) or None) for item in stickers))


def quoted_files_of(message: dict[str, Json]) -> tuple[QuotedAttachment, ...]:
    """The files of a quoted message: kind and name only."""
    return tuple(QuotedAttachment(kind=file.kind, name=file.name) for file in files_of(message))


def embeds_of(message: dict[str, Json]) -> str:
    """The visible text of embeds, in which bots like to speak."""
    lines: list[str] = []
    for embed in maps_of(message.get("embeds")):
        lines += [text_of(embed.get("title")), text_of(embed.get("description"))]
        for field in maps_of(embed.get("fields")):
            lines += [text_of(field.get("name")), text_of(field.get("value"))]
        lines.append(text_of(map_of(embed.get("footer")).get("text")))
    return "\n".join(line for line in lines if line.strip())


def ms_of(value: object) -> int | None:
    """An ISO 8601 time with its offset as Unix milliseconds; None when it is none."""
    try:
        moment = datetime.fromisoformat(text_of(value))
        ms = round(moment.timestamp() * 1000) if moment.tzinfo is not None else 0
    except (ValueError, OverflowError):
        return None
    return ms if ms > 0 else None


def _file(item: dict[str, Json]) -> Attachment:
    media_type, url = text_of(item.get("content_type")), text_of(item.get("url"))
    return Attachment(
        kind=_kind(media_type),
        name=text_of(item.get("filename")) or None,
        media_type=media_type or None,
        size=int_of(item.get("size")),
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
