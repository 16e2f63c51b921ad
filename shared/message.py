"""The normalised message: what every stage behind ingest knows of an event, whatever platform it came from.

Field names equal those of the golden events (`tests/fixtures`), so that a fixture's `expect` is compared key by key.
"""

import hashlib
import json
import zlib
from functools import cached_property
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

ChannelName: TypeAlias = Literal[
    "weixin", "feishu", "dingtalk", "wecom", "qq", "slack", "telegram", "discord", "whatsapp", "mock"
]
ChatType: TypeAlias = Literal["private", "group"]
AttachmentKind: TypeAlias = Literal["image", "file", "audio", "video", "other"]
UnavailableReason: TypeAlias = Literal["not-delivered", "not-found", "deleted", "permission-denied", "unsupported"]
Provenance: TypeAlias = Literal["payload", "lookup", "index-id", "index-time", "history", "none"]
Action: TypeAlias = Literal["process", "edit", "ignore"]


class Frozen(BaseModel):
    """A value that never changes and refuses what it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Attachment(Frozen):
    """A file of the current message. `ref` is what the channel's `fetch` needs; it never reaches a prompt or a log."""

    kind: AttachmentKind
    name: str | None = None
    media_type: str | None = None
    size: int | None = None
    transcript: str | None = None
    ref: dict[str, str] = {}


class QuotedAttachment(Frozen):
    """A file of the quoted message: described, never downloaded."""

    kind: AttachmentKind
    name: str | None = None


class Lookup(Frozen):
    """What to ask the platform for, and where: ids only, never a URL, token or code.

    `via`: `platform` (one call), `index` (the outbound index by `keys`, then by time), `history` (bounded lookback).
    """

    via: Literal["platform", "index", "history"]
    chat_id: str
    message_id: str | None = None
    thread_id: str | None = None
    keys: tuple[str, ...] = ()
    quoted_at_ms: int | None = None


class ReplyReference(Frozen):
    """What the current message quotes. Absent values are None, never guessed; one level only.

    `lookup` stays set while the reference is unresolved. `source` says where the content came from.
    """

    message_id: str | None = None
    author_id: str | None = None
    author_name: str | None = None
    content: str | None = None
    selected: str | None = None
    attachments: tuple[QuotedAttachment, ...] = ()
    unavailable_reason: UnavailableReason | None = None
    truncated: bool = False
    lookup: Lookup | None = None
    explicit_text: bool = False
    source: Provenance = "none"
    reference_kind: str | None = None
    source_chat_id: str | None = None

    @property
    def needs_lookup(self) -> bool:
        """True while only a lookup can tell what was quoted."""
        return self.lookup is not None


class Ocr(Frozen):
    """Scores of a text that was read from a screen: rule score 0..1, the second engine's text and own score."""

    score: float
    second_text: str | None = None
    second_score: float | None = None


class Message(Frozen):
    """One normalised event.

    keys: stable message keys within the account, the first one names the message for good.
    windows: those of `keys` that mean the same message only for so many ms of received time (fingerprints of a text).
    mentions_bot: None where the question makes no sense (private) or the platform does not tell.
    addressed: in a group, whether the message is meant for the bot (mention, reply where the platform counts it).
    sent_at_ms: the event's own time, Unix milliseconds, where the platform tells.
    route: what a reply to this message needs beyond chat, thread and message id (opaque, channel-owned).
    """

    channel: ChannelName
    account: str
    message_id: str
    keys: tuple[str, ...]
    windows: dict[str, int] = {}
    chat_id: str
    chat_type: ChatType
    thread_id: str | None = None
    sender_id: str = ""
    sender_name: str | None = None
    sender_is_bot: bool = False
    system: bool = False
    text: str = ""
    text_raw: str = ""
    mentions: tuple[str, ...] = ()
    mentions_bot: bool | None = None
    mentions_all: bool = False
    self_known: bool = True
    addressed: bool = False
    attachments: tuple[Attachment, ...] = ()
    reply_to: ReplyReference | None = None
    sent_at_ms: int | None = None
    action: Action = "process"
    ignore_reason: str | None = None
    ocr: Ocr | None = None
    route: dict[str, str] = {}

    @property
    def kind(self) -> str:
        """`text`, or the kind of the first attachment."""
        return self.attachments[0].kind if self.attachments else "text"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what the sender wrote (text and attachments, not the quote), 64 hex digits."""
        parts = [self.text, [[a.kind, a.name] for a in self.attachments]]
        return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode("utf-8", "surrogatepass")).hexdigest()

    @cached_property
    def identity(self) -> str:
        """What a second event with the same key must equal to be a duplicate and not a conflict."""
        return "|".join((self.digest[:32], self.kind, short_hash(self.sender_id), short_hash(self.chat_id)))


def short_hash(*parts: str) -> str:
    """24 hex digits of SHA-256 over `parts`: names a thing in a key without showing a person's id."""
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def partition_of(account: str, chat_id: str, partitions: int) -> int:
    """The partition that gates a chat: crc32(account + chat) mod partitions (design, section 3)."""
    return zlib.crc32((account + chat_id).encode("utf-8", "surrogatepass")) % partitions


def lane_of(account: str, chat_id: str, thread_id: str | None, sender_id: str | None) -> str:
    """The lane's name, 24 hex digits. `sender_id` is given only where the session belongs to the sender."""
    return short_hash("lane", account, chat_id, thread_id or "", sender_id or "")
