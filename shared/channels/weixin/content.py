"""What a Weixin message says: texts, files and ids. Pure; used for the current message and for the quoted one."""

import base64
import binascii
import re

from shared.channels.port import Json
from shared.channels.reading import int_of, map_of, maps_of, text_of
from shared.channels.weixin.limits import AHEAD_MS, EARLIEST_MS, ID_TIME_SHIFT, MAX_ID
from shared.message import Attachment, AttachmentKind, QuotedAttachment

_DIGITS = re.compile(r"[0-9]{1,20}")
_TIMED = re.compile(r"[0-9]{16,20}")
_HEX_KEY = re.compile(r"[0-9a-fA-F]{32}")

_FILES: tuple[tuple[str, AttachmentKind], ...] = (
    ("image_item", "image"),
    ("voice_item", "audio"),
    ("file_item", "file"),
    ("video_item", "video"),
)


def uint64_of(value: object) -> str | None:
    """A message id as exact text, whether it is written as a number or a string; 0 and everything else is none."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_ID:
        return str(value)
    return None


def time_of(message_id: str | None, now_ms: int | None) -> int | None:
    """The Unix ms in an id of 16 to 20 digits; None before 2020 or, where `now_ms` is known, a day after it (Q-80)."""
    if message_id is None or not _TIMED.fullmatch(message_id):
        return None
    at_ms = int(message_id) >> ID_TIME_SHIFT
    late = now_ms is not None and at_ms > now_ms + AHEAD_MS
    return at_ms if at_ms >= EARLIEST_MS and not late else None


def moment_of(value: object) -> int | None:
    """A time in Unix ms; 0 is none."""
    at_ms = int_of(value)
    return at_ms if at_ms is not None and at_ms > 0 else None


def items_of(message: dict[str, Json]) -> list[dict[str, Json]]:
    """The items of a message: one in practice, since text and picture come as two messages."""
    return maps_of(message.get("item_list"))


def text_in(item: dict[str, Json]) -> str:
    """The item's text, else the transcript of its voice: by shape, whatever `type` says (Q-66)."""
    text = text_of(map_of(item.get("text_item")).get("text"))
    return text if text.strip() else text_of(map_of(item.get("voice_item")).get("text")) or text


def body_of(items: list[dict[str, Json]]) -> str:
    """What the sender wrote or said, untouched."""
    return "\n".join(text for item in items if (text := text_in(item)))


def files_of(items: list[dict[str, Json]]) -> tuple[Attachment, ...]:
    """The files of a message, with what `fetch` needs."""
    return tuple(_file(kind, found) for item in items for key, kind in _FILES if (found := map_of(item.get(key))))


def quoted_files_of(item: dict[str, Json]) -> tuple[QuotedAttachment, ...]:
    """The files of a quoted item: kind and name only."""
    return tuple(QuotedAttachment(kind=file.kind, name=file.name) for file in files_of([item]))


def key_of(value: object) -> str | None:
    """An AES-128 key as 32 hex digits, from base64 of its 16 bytes (images) or of those digits (voice, file, video);
    None when it is neither."""
    try:
        raw = base64.b64decode(text_of(value), validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(raw) == 16:
        return raw.hex()
    spelled = raw.decode("ascii", "replace")
    return spelled.lower() if _HEX_KEY.fullmatch(spelled) else None


def _file(kind: AttachmentKind, item: dict[str, Json]) -> Attachment:
    media = map_of(item.get("media"))
    spelled = text_of(item.get("aeskey"))
    ref = {
        "url": text_of(media.get("full_url")),
        "param": text_of(media.get("encrypt_query_param")),
        "key": spelled.lower() if _HEX_KEY.fullmatch(spelled) else key_of(media.get("aes_key")) or "",
    }
    return Attachment(
        kind=kind,
        name=text_of(item.get("file_name")) or None,
        size=_size(item),
        ref={key: value for key, value in ref.items() if value},
    )


def _size(item: dict[str, Json]) -> int | None:
    """A file's length comes as a string, a video's and a picture's as numbers."""
    length = item.get("len")
    if isinstance(length, str) and _DIGITS.fullmatch(length):
        return int(length)
    sizes = (int_of(item.get(key)) for key in ("hd_size", "mid_size", "video_size"))
    return next((size for size in sizes if size is not None and size > 0), None)
