"""What the edge needs of the rest: somewhere to publish, a lease for a connector, a place for its cursor."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from shared.errors import MillstreamError
from shared.message import Message


@dataclass(frozen=True, slots=True)
class Accepted:
    """The server has the records: one envelope id for each message, in the order given."""

    ids: tuple[str, ...]


class Overloaded(MillstreamError):
    """Nothing was taken: a backlog is full (`account`, `global`) or the server's memory is (`memory`).

    `retry_after_s`: seconds after which it is worth asking again.
    """

    def __init__(self, scope: Literal["account", "global", "memory"], retry_after_s: float) -> None:
        super().__init__(f"the backlog is full ({scope})")
        self.scope: Literal["account", "global", "memory"] = scope
        self.retry_after_s = retry_after_s


class Unavailable(MillstreamError):
    """The server did not answer: the messages may have been taken or not, so nothing may be acknowledged."""


class PublisherPort(Protocol):
    """The way into the pipeline."""

    async def accept(self, messages: Sequence[Message], received_at_ms: int) -> Accepted:
        """Make the messages' records; returns only when the server has them all.

        `received_at_ms`: Unix milliseconds. Raises Overloaded or Unavailable. May be cancelled: the caller has given
        up waiting, and what comes again is recognised as a duplicate.
        """
        ...


@dataclass(frozen=True, slots=True)
class Fence:
    """Proof of holding a lease at one time; a later holder has another token."""

    token: str


class AccountLease(Protocol):
    """The right to be the one connector of an account. Whoever implements it renews it by itself while it is held."""

    async def acquire(self) -> Fence | None:
        """The fence, or None while another process holds the lease. Raises Unavailable."""
        ...

    def valid(self) -> bool:
        """False once the lease was lost or could not be renewed for two thirds of its length."""
        ...

    async def release(self) -> None:
        """Give it back; harmless when it is not held. Never raises."""
        ...


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a long poll stands. `offset`: the first update wanted. `at_ms`: Unix ms when it was written."""

    offset: int
    at_ms: int


class CursorStore(Protocol):
    """The cursor of one account."""

    async def load(self) -> Cursor | None:
        """The stored cursor, None at the very first start. Raises Unavailable."""
        ...

    async def save(self, cursor: Cursor, fence: Fence) -> bool:
        """Store it; False when `fence` is no longer the holder's, then nothing was stored. Raises Unavailable."""
        ...
