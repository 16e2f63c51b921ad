"""What a WeCom body or quote says: both have the same shape, text and files by `msgtype`. Pure."""

import re
from dataclasses import dataclass
from typing import Final

from shared.channels.port import Json
from shared.channels.reading import map_of, maps_of, text_of
from shared.channels.wecom.limits import PLACEHOLDER
from shared.message import Attachment, AttachmentKind, QuotedAttachment, ReplyReference

MEDIA: Final[dict[str, AttachmentKind]] = {"image": "image", "voice": "audio", "file": "file", "video": "video"}
"""Which `msgtype` is a file of which kind."""


@dataclass(frozen=True, slots=True)
class Content:
    """`texts`: what can be read, transcripts included, item by item."""

    texts: tuple[str, ...]
    files: tuple[Attachment, ...]


def content_of(holder: dict[str, Json]) -> Content:
    """The content of a body or a quote; of a mixed one all items in order."""
    items = [holder]
    if holder.get("msgtype") == "mixed":
        items = maps_of(map_of(holder.get("mixed")).get("msg_item"))
    texts: list[str] = []
    files: list[Attachment] = []
    for item in items:
        kind = text_of(item.get("msgtype"))
        inner = item.get(kind)
        if not isinstance(inner, dict):
            continue
        said = text_of(map_of(inner).get("content"))
        if kind in MEDIA:
            files.append(_file(kind, map_of(inner)))
        if said and kind in ("text", "voice"):
            texts.append(said)
    return Content(tuple(texts), tuple(files))


def _file(kind: str, inner: dict[str, Json]) -> Attachment:
    """WeCom tells neither name nor type. `aeskey` comes by socket only: else the account's key opens the file."""
    url, key = text_of(inner.get("url")).strip(), text_of(inner.get("aeskey"))
    ref = {"url": url, "aeskey": key} if key else {"url": url}
    transcript = text_of(inner.get("content")) if kind == "voice" else ""
    return Attachment(kind=MEDIA[kind], transcript=transcript or None, ref=ref if url else {})


def reference_of(body: dict[str, Json]) -> ReplyReference | None:
    """The quote: content only, since WeCom tells neither id nor author nor time, and can be asked for none."""
    quote = body.get("quote")
    if not isinstance(quote, dict):
        return None
    holder = map_of(quote)
    content = content_of(holder)
    files = tuple(QuotedAttachment(kind=each.kind) for each in content.files)
    shown = [text for text in content.texts if text.strip().strip("[]【】") != PLACEHOLDER]
    text = "\n".join(shown)
    readable = bool(text.strip())
    if readable or files:
        return ReplyReference(
            content=text if readable else None, attachments=files, explicit_text=readable, source="payload"
        )
    kind = text_of(holder.get("msgtype"))
    known = kind in ("", "text", "mixed") or kind in MEDIA
    hidden = len(shown) < len(content.texts)
    return ReplyReference(unavailable_reason="not-delivered" if known and not hidden else "unsupported")


@dataclass(frozen=True, slots=True)
class Mention:
    """What a group's text says of the bot: `text` without the bot's own mention, trimmed. `mine` None: no telling."""

    text: str
    mine: bool | None
    addressed: bool


def mention_in(text: str, name: str) -> Mention:
    """Look for `@name`, the only trace of a mention; only that name is removed, never another person's.

    A name that ends where a word ends is preferred. WeCom delivers only messages that mention the bot, so where there
    is none such, one that text follows at once is the bot's all the same. Without a name any `@` counts (behaviour.md,
    section 2, step 5), and the text stays.
    """
    name = name.strip().removeprefix("@")
    if not name:
        return Mention(text.strip(), None, "@" in text)
    for after in (r"(?![\w]|[.-]\w)", ""):
        # Blanks behind the mention go with it where others, or nothing, stand before it.
        pattern = rf"(?:(?<=\s)|^)@{re.escape(name)}{after}[^\S\n]{{0,2}}|(?<![A-Za-z0-9])@{re.escape(name)}{after}"
        rest, count = re.subn(pattern, "", text)
        if count:
            return Mention(rest.strip(), True, True)
    return Mention(text.strip(), None, False)
