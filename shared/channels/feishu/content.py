"""What a Feishu message says: text, files, mentions. Pure; for current and looked-up messages."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from shared.channels.body import parse_json
from shared.channels.feishu.card import visible_text
from shared.channels.port import Json
from shared.channels.reading import LARGEST, id_of, int_of, map_of, maps_of, text_of
from shared.errors import Malformed
from shared.message import Attachment, AttachmentKind, QuotedAttachment

EVERYONE = "@_all"
_EVERYONE_NAME = "所有人"
_EVERYONE_IDS = frozenset({EVERYONE, "all", "@all"})
_KEY = re.compile(r"@_user_\d{1,6}|@_all(?![A-Za-z0-9_])", re.ASCII)
_DIGITS = re.compile(r"\d{1,18}", re.ASCII)

# Message types with a file: its kind, and the `type` that the resource call wants (None: it cannot be fetched).
_FILES: dict[str, tuple[AttachmentKind, str | None]] = {
    "image": ("image", "image"),
    "file": ("file", "file"),
    "audio": ("audio", "file"),
    "media": ("video", "file"),
}


@dataclass(frozen=True, slots=True)
class Said:
    """`everyone`: the message pings everyone."""

    text: str = ""
    attachments: tuple[Attachment, ...] = ()
    everyone: bool = False


@dataclass(frozen=True, slots=True)
class Mention:
    """A placeholder of the text. `ids`: all under which Feishu names the one who is meant."""

    key: str
    name: str
    ids: tuple[str, ...]


def mentions_of(message: dict[str, Json]) -> tuple[Mention, ...]:
    """The mentions of an event (`id` is an object) or of a looked-up message (`id` is text)."""
    found: list[Mention] = []
    for item in maps_of(message.get("mentions")):
        named = item.get("id")
        known = [map_of(named).get(key) for key in ("open_id", "user_id", "union_id")]
        ids = [each for value in (known if isinstance(named, dict) else [named]) if (each := id_of(value))]
        found.append(Mention(text_of(item.get("key")), text_of(item.get("name")), tuple(ids)))
    return tuple(found)


def said_of(kind: str, raw: str, mentions: tuple[Mention, ...], me: frozenset[str], message_id: str) -> Said:
    """What `raw`, the content of a message of type `kind`, says. Mentions of `me` go, others become names.

    Content that is no JSON (merged forwards, recalled messages) says nothing by itself.
    """
    try:
        content = map_of(parse_json(raw.encode("utf-8", "replace")))
    except Malformed:
        content = {}
    names = _names(mentions, me)
    match kind:
        case "text":
            return _text(text_of(content.get("text")), names)
        case "post":
            return _post(content, names, message_id)
        case "interactive":
            text = visible_text(content)
            return Said(text) if text else Said(attachments=(Attachment(kind="other"),))
        case _:
            return Said(attachments=(_file(kind, content, message_id),))


def quoted_files_of(said: Said) -> tuple[QuotedAttachment, ...]:
    """The files of a quoted message; what is no file and has no name tells nothing."""
    files = (QuotedAttachment(kind=each.kind, name=each.name) for each in said.attachments)
    return tuple(file for file in files if file.kind != "other" or file.name)


def ms_of(value: object) -> int | None:
    """A time in ms, which Feishu writes as decimal text."""
    number = int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else int_of(value)
    return number if number is not None and 0 < number <= LARGEST else None


def _names(mentions: tuple[Mention, ...], me: frozenset[str]) -> dict[str, str]:
    names = {EVERYONE: f"@{_EVERYONE_NAME}"}
    for mention in mentions:
        if not mention.key:
            continue
        own = not me.isdisjoint(mention.ids)
        names[mention.key] = "" if own else f"@{mention.name or (_EVERYONE_NAME if mention.key == EVERYONE else '')}"
    return names


def _text(text: str, names: dict[str, str]) -> Said:
    """Keys are read whole: `@_user_1` is no part of `@_user_10`."""
    keys = _KEY.findall(text)
    return Said(_KEY.sub(_naming(names), text).strip(), (), EVERYONE in keys)


def _naming(names: dict[str, str]) -> Callable[[re.Match[str]], str]:
    return lambda found: names.get(found.group(0), found.group(0))


def _post(content: dict[str, Json], names: dict[str, str], message_id: str) -> Said:
    """Received posts are flat; sent ones lie in a language. `content_v2` is read where `content` has nothing."""
    post = content
    if "content" not in content and "content_v2" not in content:
        post = next((inner for value in content.values() if "content" in (inner := map_of(value))), {})
    lines, files, everyone = _rows(post.get("content"), names, message_id)
    if not lines and not files:
        lines, files, everyone = _rows(post.get("content_v2"), names, message_id)
    text = "\n".join(line for line in (text_of(post.get("title")).strip(), *lines) if line)
    return Said(text.strip(), tuple(files), everyone)


def _rows(value: object, names: dict[str, str], message_id: str) -> tuple[list[str], list[Attachment], bool]:
    lines: list[str] = []
    files: list[Attachment] = []
    everyone = False
    for row in value[:1000] if isinstance(value, list) else []:  # pyright: ignore[reportUnknownVariableType]
        parts: list[str] = []
        for element in maps_of(row):  # pyright: ignore[reportUnknownArgumentType]
            match element.get("tag"):
                case "img":
                    files.append(_file("image", element, message_id))
                case "media":
                    files.append(_file("media", element, message_id))
                case "at":
                    all_of_them = text_of(element.get("user_id")) in _EVERYONE_IDS
                    everyone = everyone or all_of_them
                    parts.append(names[EVERYONE] if all_of_them else _at(element, names))
                case "emotion":
                    parts.append(f"[{text_of(element.get('emoji_type'))}]")
                case _:
                    parts.append(text_of(element.get("text")))
        if line := "".join(parts).strip():
            lines.append(line)
    return lines, files, everyone


def _at(element: dict[str, Json], names: dict[str, str]) -> str:
    """In events `user_id` holds the placeholder's key."""
    key = text_of(element.get("user_id"))
    return names[key] if key in names else f"@{text_of(element.get('user_name'))}"


def _file(kind: str, content: dict[str, Json], message_id: str) -> Attachment:
    """A file with what its download needs: the id of the message that it lies in, its key and its sort."""
    found, sort = _FILES.get(kind, ("other", None))
    key = text_of(content.get("image_key" if kind == "image" else "file_key"))
    fetchable = sort is not None and key
    return Attachment(
        kind=found,
        name=text_of(content.get("file_name")) or (text_of(content.get("name")) if kind == "location" else "") or None,
        ref={"message_id": message_id, "key": key, "type": sort or ""} if fetchable else {},
    )
