"""The quoted message made safe: limits, cleaning and defaults of a reference (behaviour.md, section 3). Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Final, cast, get_args

from shared.message import (
    AttachmentKind,
    Lookup,
    Provenance,
    QuotedAttachment,
    ReplyReference,
    UnavailableReason,
)

CONTENT_MAX: Final = 8_000
ATTACHMENTS_MAX: Final = 20
AUTHOR_NAME_MAX: Final = 256
FILE_NAME_MAX: Final = 255
ID_MAX: Final = 256
"""The limits of behaviour.md, section 3, in code points (ATTACHMENTS_MAX: a count)."""

KINDS: Final[frozenset[str]] = frozenset(get_args(AttachmentKind))
REASONS: Final[frozenset[str]] = frozenset(get_args(UnavailableReason))

# The list of behaviour.md, "Cleaning": control characters, zero-width and bidi marks, the byte order mark. LF stays.
_REMOVED = re.compile(
    "[\u0000-\u0009\u000b\u000c\u000e-\u001f\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]"
)
_LINE_END = re.compile("\r\n?")
# Half a surrogate pair has no UTF-8 form: kept, it would make the whole message unwritable.
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def clean_text(value: str) -> str:
    """`value` with LF as its only line end, without the characters that the rules remove, trimmed. Not cut."""
    lines = _LINE_END.sub("\n", value)
    return _LONE_SURROGATE.sub("\ufffd", _REMOVED.sub("", lines)).strip()


def clean_line(value: str) -> str:
    """`value` cleaned as a one-line field: line ends become blanks, runs of white space one blank. Not cut."""
    return " ".join(clean_text(value).split())


def clean_file_name(value: str | None) -> str | None:
    """A file's base name (`\\` counts as `/`), cleaned, at most FILE_NAME_MAX code points; None if none is left."""
    base = clean_line(value or "").replace("\\", "/").rstrip("/").rsplit("/", 1)[-1].strip()
    return None if base in ("", ".", "..") else base[:FILE_NAME_MAX]


def clean_reference(ref: ReplyReference) -> ReplyReference:
    """`ref` within the limits, cleaned, with a consistent reason.

    A reason is dropped where something is readable; where nothing is and no lookup is pending, it is `not-delivered`.
    `explicit_text` and `truncated` follow from what is left.
    """
    content, content_cut = _cut(clean_text(ref.content or ""))
    selected, selected_cut = _cut(clean_text(ref.selected or ""))
    attachments = tuple(
        QuotedAttachment(kind=a.kind, name=clean_file_name(a.name)) for a in ref.attachments[:ATTACHMENTS_MAX]
    )
    readable = bool(content or selected or attachments)
    reason = None if readable else ref.unavailable_reason
    if not readable and reason is None and ref.lookup is None:
        reason = "not-delivered"
    return ref.model_copy(
        update={
            "message_id": _line(ref.message_id, ID_MAX),
            "author_id": _line(ref.author_id, ID_MAX),
            "author_name": _line(ref.author_name, AUTHOR_NAME_MAX),
            "content": content,
            "selected": selected,
            "attachments": attachments,
            "unavailable_reason": reason,
            "truncated": ref.truncated or content_cut or selected_cut or len(ref.attachments) > ATTACHMENTS_MAX,
            "explicit_text": ref.explicit_text and content is not None,
            "reference_kind": _line(ref.reference_kind, ID_MAX),
            "source_chat_id": _line(ref.source_chat_id, ID_MAX),
        }
    )


def reference_from_parts(parts: Mapping[str, object], *, lookup: Lookup | None = None) -> ReplyReference:
    """A clean reference from loosely typed input.

    Read from `parts`: message_id, author_id, author_name, content, selected, attachments (maps with kind and name),
    unavailable_reason, reference_kind, source_chat_id; every other key (an URL, a token, a quote inside the quote) is
    left behind. A value of a wrong type is absent; an unknown kind is `other`; a reason that is not in the list is
    dropped. Content that came this way counts as explicit text. `lookup` is kept only where nothing is readable.
    """
    content = _text(parts.get("content"))
    selected = _text(parts.get("selected"))
    attachments = tuple(_attachments(parts.get("attachments")))
    readable = bool(clean_text(content or "") or clean_text(selected or "") or attachments)
    source: Provenance = "payload" if readable else "none"
    return clean_reference(
        ReplyReference(
            message_id=_id(parts.get("message_id")),
            author_id=_id(parts.get("author_id")),
            author_name=_text(parts.get("author_name")),
            content=content,
            selected=selected,
            attachments=attachments,
            unavailable_reason=cast("UnavailableReason | None", _listed(parts.get("unavailable_reason"), REASONS)),
            lookup=None if readable else lookup,
            explicit_text=content is not None,
            source=source,
            reference_kind=_text(parts.get("reference_kind")),
            source_chat_id=_id(parts.get("source_chat_id")),
        )
    )


def explicit_text(ref: ReplyReference) -> str:
    """The text that the event itself quoted: the only evidence of `evidence_only`. Empty where there is none."""
    return ref.content or "" if ref.explicit_text else ""


def _cut(value: str) -> tuple[str | None, bool]:
    """The first CONTENT_MAX code points (None for nothing), and whether something was cut off."""
    return value[:CONTENT_MAX] or None, len(value) > CONTENT_MAX


def _line(value: str | None, limit: int) -> str | None:
    return clean_line(value or "")[:limit] or None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _id(value: object) -> str | None:
    """Platforms send ids as text or as numbers; a boolean is no id."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else _text(value)


def _listed(value: object, allowed: frozenset[str]) -> str | None:
    return value if isinstance(value, str) and value in allowed else None


def _attachments(value: object) -> Iterable[QuotedAttachment]:
    if not isinstance(value, list | tuple):
        return
    for item in cast("Iterable[object]", value):
        if isinstance(item, Mapping):
            described = cast("Mapping[str, object]", item)
            kind = _listed(described.get("kind"), KINDS) or "other"
            yield QuotedAttachment(kind=cast("AttachmentKind", kind), name=_text(described.get("name")))
