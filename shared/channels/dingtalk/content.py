"""What a DingTalk message says, current or quoted: text, files, parts of a rich text. Pure."""

from typing import Final

from shared.channels.body import parse_json
from shared.channels.dingtalk.limits import SECONDS_BELOW
from shared.channels.port import Json
from shared.channels.reading import LARGEST, int_of, maps_of, text_of, whole
from shared.errors import Malformed
from shared.message import Attachment, AttachmentKind

MEDIA: Final[dict[str, AttachmentKind]] = {"picture": "image", "audio": "audio", "video": "video", "file": "file"}
"""Kinds of files by msgtype."""


def opened(value: object) -> Json:
    """A value that DingTalk writes as JSON or as a string of JSON; None where the string holds none."""
    if not isinstance(value, str):
        return value
    try:
        return parse_json(whole(value).encode())
    except Malformed:
        return None


def moment_of(value: object) -> int | None:
    """A time as Unix milliseconds, whether written in seconds or milliseconds; 0 and less is none."""
    number = int_of(value)
    if number is None and isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 16:
        number = int(value)
    if number is None or not 0 < number <= LARGEST // 1000:
        return None
    return number * 1000 if number < SECONDS_BELOW else number


def elements_of(content: dict[str, Json]) -> list[dict[str, Json]]:
    """The parts of a rich text."""
    return maps_of(opened(content.get("richText")))


def rich_text_of(content: dict[str, Json]) -> str:
    """The words of a rich text, joined; both dialects, `text` (current) and `content` (quoted)."""
    return "".join(
        text_of(each.get("text")) or text_of(each.get("content"))
        for each in elements_of(content)
        if kind_of(each) not in MEDIA
    )


def kind_of(message: dict[str, Json]) -> str:
    """A message's or a part's type, in any of its three spellings."""
    return next((found for key in ("msgtype", "msgType", "type") if (found := text_of(message.get(key)))), "")


def words_of(content: dict[str, Json]) -> str:
    """A text: `text`, else `content`."""
    return text_of(content.get("text")) or text_of(content.get("content"))


def record_of(content: dict[str, Json]) -> str:
    """A chat record's title and summary, in lines."""
    lines = (text_of(content.get("title")).strip(), text_of(content.get("summary")).strip())
    return "\n".join(line for line in lines if line)


def files_of(kind: str, content: dict[str, Json]) -> tuple[Attachment, ...]:
    """The files of a message of this kind, with the code that `fetch` needs."""
    if kind == "richText":
        return tuple(_file(MEDIA[part], each) for each in elements_of(content) if (part := kind_of(each)) in MEDIA)
    return (_file(MEDIA[kind], content),) if kind in MEDIA else ()


def _file(kind: AttachmentKind, content: dict[str, Json]) -> Attachment:
    code = text_of(content.get("downloadCode")) or text_of(content.get("pictureDownloadCode"))
    return Attachment(
        kind=kind,
        name=text_of(content.get("fileName")) or None,
        transcript=(text_of(content.get("recognition")) or None) if kind == "audio" else None,
        ref={"code": code} if code else {},
    )
