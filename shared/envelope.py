"""The envelope: the one thing that moves through the pipeline."""

from typing import Literal

from pydantic import ValidationError
from ulid import ULID

from shared.errors import Malformed
from shared.message import Frozen, Message

VERSION = 1


class NewerVersion(Malformed):
    """An envelope that a newer Millstream wrote: it waits for an up-to-date worker."""


class Unreadable(Malformed):
    """Bytes that are no envelope. `raw` keeps them for the dead letter."""

    def __init__(self, text: str, raw: bytes) -> None:
        super().__init__(text)
        self.raw = raw


class Envelope(Frozen):
    """A message with its identity: `id` is a ULID, `received_at_ms` Unix milliseconds when ingest had it."""

    version: Literal[1] = VERSION
    id: str
    message: Message
    received_at_ms: int
    traceparent: str = ""

    def to_json(self) -> str:
        """The one JSON form, without absent values."""
        return self.model_dump_json(exclude_defaults=True)

    @classmethod
    def from_json(cls, raw: bytes | str) -> "Envelope":
        """Read one back. Raises NewerVersion or Unreadable, which keeps the bytes."""
        # The inverse of what `shared.redis.client.connect` does with bytes that are not UTF-8.
        data = raw.encode("utf-8", "surrogateescape") if isinstance(raw, str) else raw
        try:
            return cls.model_validate_json(data)
        except ValidationError as error:
            if _version(data) > VERSION:
                raise NewerVersion("written by a newer Millstream; update this worker") from error
            kinds = sorted({f"{'.'.join(map(str, e['loc']))}: {e['type']}" for e in error.errors()})
            raise Unreadable(f"not an envelope: {'; '.join(kinds)[:500]}", data) from None


class _Versioned(Frozen):
    model_config = {"extra": "ignore", "frozen": True}
    version: int = VERSION


def _version(data: bytes) -> int:
    try:
        return _Versioned.model_validate_json(data).version
    except ValidationError:
        return 0


def new_id(now_ms: int) -> str:
    """A fresh ULID whose time part is `now_ms`, 26 characters."""
    return str(ULID.from_timestamp(now_ms / 1000))
