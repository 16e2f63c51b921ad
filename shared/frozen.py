"""A turn's frozen input: written once at the end of the quotes stage, used by everything later, never made anew.

Stored as its SHA-256, a line end and the bytes; bytes that do not match are refused.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import ValidationError

from shared.channels.port import Target
from shared.errors import MillstreamError
from shared.message import Frozen, Message, Provenance, ReplyReference
from shared.prompt import FileRow, escape_reserved, render, reply_fields, source_block_of, system_blocks, title_of
from shared.settings import AccountSettings, RouteSettings, Settings


class FrozenMismatch(MillstreamError):
    """A frozen record whose bytes are not those that were written (dead, reason `frozen-mismatch`)."""


class Row(Frozen):
    """A context row: what was said in the conversation without a turn of its own."""

    label: str
    text: str
    at_ms: int


class FrozenTurn(Frozen):
    """Everything that dispatch and delivery need of a message; see `compose`."""

    envelope_id: str
    account: str
    channel: str
    text: str
    prompt: str
    system: tuple[str, ...] = ()
    source: dict[str, str] = {}
    reply_to: dict[str, Any] | None = None
    attachments: tuple[dict[str, str], ...] = ()
    context: tuple[Row, ...] = ()
    title: str = ""
    audience: Literal["private", "public"] = "private"
    role: str = "guest"
    chat_id: str = ""
    chat_type: Literal["private", "group"] = "private"
    thread_id: str | None = None
    sender_id: str = ""
    reply_message_id: str | None = None
    route: dict[str, str] = {}
    harness: str = "default"
    model: str = ""
    language: str = "auto"
    provenance: Provenance = "none"
    verified: Literal["signature", "fetched"] = "signature"

    @property
    def target(self) -> Target:
        """Where the reply goes."""
        return Target(self.chat_id, self.chat_type, self.thread_id, self.reply_message_id, self.route)

    def encode(self) -> str:
        """The stored form."""
        body = self.model_dump_json(exclude_defaults=True)
        return f"{hashlib.sha256(body.encode()).hexdigest()}\n{body}"

    @classmethod
    def decode(cls, stored: str) -> "FrozenTurn":
        """Read the stored form. Raises FrozenMismatch when digest or shape do not hold."""
        digest, _, body = stored.partition("\n")
        if hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest() != digest:
            raise FrozenMismatch("the frozen input is not the one that was written")
        try:
            return cls.model_validate_json(body)
        except ValidationError as error:
            raise FrozenMismatch("the frozen input has another shape") from error


def compose(
    envelope_id: str,
    message: Message,
    role: str,
    account: AccountSettings,
    settings: Settings,
    route: RouteSettings,
    target: Target,
    *,
    reference: ReplyReference | None = None,
    context: Sequence[Row] = (),
    unavailable: Sequence[str | None] = (),
    verified: Literal["signature", "fetched"] = "signature",
) -> FrozenTurn:
    """The frozen input of a message. Pure. `unavailable`: for each attachment why it could not be fetched, or None."""
    harness = settings.harness_named(route.harness or "default")
    reasons = list(unavailable) or [None] * len(message.attachments)
    files = [FileRow.of(a, reason) for a, reason in zip(message.attachments, reasons, strict=True)]
    source = source_block_of(message)
    public = message.chat_type == "group" or role == "guest"
    return FrozenTurn(
        envelope_id=envelope_id,
        account=message.account,
        channel=message.channel,
        text=message.text,
        prompt=render(source, reference, message.text, files),
        system=system_blocks(
            route.system if route.system is not None else harness.system, settings.presence.text, public
        ),
        source=source.as_dict(),
        reply_to=None if reference is None else reply_fields(reference),
        attachments=tuple(row.as_dict() for row in files),
        context=tuple(
            Row(label=escape_reserved(r.label), text=escape_reserved(r.text), at_ms=r.at_ms) for r in context
        ),
        title=title_of(message.text),
        audience="public" if public else "private",
        role=role,
        chat_id=target.chat_id,
        chat_type=target.chat_type,
        thread_id=target.thread_id,
        sender_id=message.sender_id,
        reply_message_id=target.reply_to,
        route=dict(target.route),
        harness=route.harness or "default",
        model=route.model or "",
        language=route.language or account.language,
        provenance=reference.source if reference is not None else "none",
        verified=verified,
    )
