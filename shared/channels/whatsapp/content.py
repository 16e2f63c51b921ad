"""What a message of the web form says: text, files and context, out of its wrappings. Pure."""

import re
from dataclasses import dataclass, field

from shared.channels.port import Json
from shared.channels.reading import LARGEST, id_of, int_of, map_of, text_of
from shared.channels.whatsapp.limits import WRAPPED, WRAPPERS
from shared.message import Attachment, AttachmentKind

_MEDIA: dict[str, AttachmentKind] = {
    "imageMessage": "image",
    "stickerMessage": "image",
    "videoMessage": "video",
    "ptvMessage": "video",
    "audioMessage": "audio",
    "documentMessage": "file",
}
_TEXTS = (
    ("extendedTextMessage", "text"),
    ("buttonsResponseMessage", "selectedDisplayText"),
    ("templateButtonReplyMessage", "selectedDisplayText"),
    ("listResponseMessage", "title"),
)
_DEVICE = re.compile(r":\d{1,5}(?=@)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Content:
    """The text, the files, and the context (quote, mentions) of one message."""

    text: str = ""
    files: tuple[Attachment, ...] = ()
    context: dict[str, Json] = field(default_factory=dict[str, Json])


def unwrapped(message: dict[str, Json]) -> dict[str, Json]:
    """The message inside its wrappings: disappearing, view once, with caption, edited and so on."""
    for _ in range(WRAPPED):
        inner = next((found for key in WRAPPERS if (found := map_of(map_of(message.get(key)).get("message")))), None)
        if inner is None:
            break
        message = inner
    return message


def content_of(message: dict[str, Json]) -> Content:
    """What an unwrapped message says; the context sits in whichever object is used."""
    context = next((found for each in message.values() if (found := map_of(map_of(each).get("contextInfo")))), {})
    for key, kind in _MEDIA.items():
        if media := map_of(message.get(key)):
            return Content(text_of(media.get("caption")), (_file(media, kind),), context)
    if text := text_of(message.get("conversation")):
        return Content(text, (), context)
    for key, name in _TEXTS:
        if text := text_of(map_of(message.get(key)).get(name)):
            return Content(text, (), context)
    return Content("", (), context)


def long_of(value: object) -> int | None:
    """A 64-bit number: as such, as digits, or as the {low, high, unsigned} that a bridge may write."""
    if isinstance(value, str):
        return int_of(int(value)) if value.isascii() and value.isdigit() and len(value) <= 19 else None
    if isinstance(value, dict):
        parts = map_of(value)  # pyright: ignore[reportUnknownArgumentType]
        low, high = int_of(parts.get("low")), int_of(parts.get("high"))
        if low is None or high is None or not 0 <= high <= LARGEST >> 32:
            return None
        return (high << 32) + (low & 0xFFFFFFFF)
    return int_of(value)


def jid_of(value: object) -> str | None:
    """A person's or a chat's id without the device: `1202:7@s.whatsapp.net` is `1202@s.whatsapp.net`."""
    found = id_of(value)
    return _DEVICE.sub("", found, count=1) if found else None


def _file(media: dict[str, Json], kind: AttachmentKind) -> Attachment:
    return Attachment(
        kind=kind,
        name=text_of(media.get("fileName")) or None,
        media_type=text_of(media.get("mimetype")) or None,
        size=long_of(media.get("fileLength")),
    )
