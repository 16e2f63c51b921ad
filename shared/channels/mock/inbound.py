"""The mock channel: a messenger that anybody with an HTTP client can be. Pure.

An event is one JSON object, or a list of them:

    {"message_id": "1", "sender": "anna", "text": "hello"}

The further keys are those of `Event`. A chat is private when it is named like the sender, unless `chat_type` says so.
"""

import hmac
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.channels.port import HookRequest, Json
from shared.channels.reading import whole
from shared.errors import Malformed, Unauthorised
from shared.message import (
    Attachment,
    AttachmentKind,
    ChatType,
    Message,
    QuotedAttachment,
    ReplyReference,
    UnavailableReason,
)
from shared.settings import AccountSettings

SECRET_HEADER = "x-millstream-secret"  # noqa: S105 - a header's name

MOST_EVENTS = 1000
"""Events in one request."""

Id = Annotated[str, Field(min_length=1, max_length=256)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class QuotedFile(_Strict):
    """A file of the quoted message."""

    kind: AttachmentKind = "file"
    name: str | None = None


class Quote(_Strict):
    """What the message quotes. Without content and attachments it is unavailable, for the reason given."""

    message_id: Id | None = None
    author_id: Id | None = None
    author_name: str | None = None
    content: str | None = None
    attachments: list[QuotedFile] = []
    unavailable_reason: UnavailableReason | None = None


class File(_Strict):
    """A file of the message; `data` holds its bytes in base64."""

    kind: AttachmentKind = "file"
    name: str | None = None
    media_type: str | None = None
    size: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    data: str | None = None


class Event(_Strict):
    """One message. `sent_at_ms`: Unix milliseconds. `mentions_bot` counts in groups only."""

    message_id: Id
    sender: Id
    text: str = ""
    chat: Id | None = None
    chat_type: ChatType | None = None
    thread: Id | None = None
    name: str | None = None
    mentions_bot: bool = False
    mentions: list[Id] = []
    mentions_all: bool = False
    reply_to: Quote | None = None
    attachments: list[File] = []
    sender_is_bot: bool = False
    system: bool = False
    sent_at_ms: Annotated[int, Field(ge=0, lt=2**63)] | None = None


def verify(request: HookRequest, account: AccountSettings, now_ms: int) -> None:
    """With `credentials.secret`, the header X-Millstream-Secret must equal it. Raises Unauthorised."""
    del now_ms
    secret = account.credential("secret")
    given = request.headers.get(SECRET_HEADER, "")
    if secret and not hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode()):
        raise Unauthorised("the secret does not match")


def normalise(event: Json, account: AccountSettings) -> list[Message]:
    """The messages of an event, in order. Raises Malformed, which names the wrong keys but none of their values."""
    items: list[Json] = event if isinstance(event, list) else [event]
    if len(items) > MOST_EVENTS:
        raise Malformed(f"more than {MOST_EVENTS} events")
    try:
        return [_message(Event.model_validate(item), account) for item in items]
    except ValidationError as error:
        kinds = sorted({f"{'.'.join(map(str, e['loc']))}: {e['type']}" for e in error.errors(include_input=False)})
        raise Malformed(whole("; ".join(kinds)[:500])) from None


def _message(event: Event, account: AccountSettings) -> Message:
    sender = whole(event.sender)
    chat_id = whole(event.chat or event.sender)
    private = event.chat_type == "private" if event.chat_type else chat_id == sender
    text = whole(event.text)
    message_id = whole(event.message_id)
    own = sender in account.all_self_ids
    return Message(
        channel="mock",
        account=account.id,
        message_id=message_id,
        keys=(f"{chat_id}:{message_id}",),
        chat_id=chat_id,
        chat_type="private" if private else "group",
        thread_id=_text(event.thread),
        sender_id=sender,
        sender_name=_text(event.name),
        sender_is_bot=event.sender_is_bot,
        system=event.system,
        text=text.strip(),
        text_raw=text,
        mentions=tuple(whole(item) for item in event.mentions),
        mentions_bot=None if private else event.mentions_bot,
        mentions_all=event.mentions_all,
        addressed=not private and event.mentions_bot,
        attachments=tuple(_file(item) for item in event.attachments),
        reply_to=_reference(event.reply_to) if event.reply_to else None,
        sent_at_ms=event.sent_at_ms,
        action="ignore" if own else "process",
        ignore_reason="self" if own else None,
    )


def _file(file: File) -> Attachment:
    return Attachment(
        kind=file.kind,
        name=_text(file.name),
        media_type=_text(file.media_type),
        size=file.size,
        ref={"data": whole(file.data)} if file.data else {},
    )


def _reference(quote: Quote) -> ReplyReference:
    readable = bool((quote.content or "").strip() or quote.attachments)
    return ReplyReference(
        message_id=_text(quote.message_id),
        author_id=_text(quote.author_id),
        author_name=_text(quote.author_name),
        content=_text(quote.content),
        attachments=tuple(QuotedAttachment(kind=item.kind, name=_text(item.name)) for item in quote.attachments),
        unavailable_reason=None if readable else quote.unavailable_reason or "not-delivered",
        explicit_text=bool((quote.content or "").strip()),
        source="payload" if readable else "none",
    )


def _text(value: str | None) -> str | None:
    return None if value is None else whole(value)
