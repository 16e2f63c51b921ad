"""The harness port: what an assistant's backend must offer. Adding a harness is adding one file and one line in
`shared.harness`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from shared.channels.port import Part


@dataclass(frozen=True, slots=True)
class ContextRow:
    """A line of the conversation that the harness was not asked about: sender's label, text, Unix ms."""

    label: str
    text: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class TurnAttachment:
    """A file of the current message. `reader` gives the bytes, or None when it is only described."""

    kind: str
    name: str | None
    media_type: str | None = None
    size: int | None = None
    digest: str | None = None
    unavailable: str | None = None
    reader: Callable[[], bytes] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Turn:
    """One run: everything comes from the frozen input but `attempt` (1 for the first try).

    id: the idempotency key. session: the session's id. system: blocks in order. prompt: the rendered blocks.
    text, reply_to, source: the same as structure. title: for a new session. model: a route's override or "".
    """

    id: str
    session: str
    system: tuple[str, ...]
    prompt: str
    text: str
    source: Mapping[str, Any]
    reply_to: Mapping[str, Any] | None = None
    attachments: tuple[TurnAttachment, ...] = ()
    context: tuple[ContextRow, ...] = ()
    title: str = ""
    model: str = ""
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Question:
    """The harness asks the asker; options may be empty."""

    id: str
    text: str
    options: tuple[str, ...] = ()
    kind: Literal["question", "approval"] = "question"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a turn: parts to send, and perhaps a question that holds the turn open."""

    parts: tuple[Part, ...]
    question: Question | None = None


@dataclass(frozen=True, slots=True)
class TurnAccepted:
    """The harness took the turn and works on it elsewhere: `url` can be polled by any worker."""

    url: str


@dataclass(frozen=True, slots=True)
class Progress:
    """The harness is alive; nothing to record."""


TurnEvent: TypeAlias = TurnAccepted | Progress


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """One message of a session. `turn_started_ms`, `turn_ended_ms` frame the turn that it belongs to."""

    role: Literal["user", "assistant", "system"]
    text: str
    at_ms: int
    turn: Literal["completed", "failed", "aborted"] = "completed"
    turn_started_ms: int | None = None
    turn_ended_ms: int | None = None
    last_of_turn: bool = True


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """Lines, newest first. `more` when older ones exist."""

    lines: tuple[HistoryLine, ...]
    more: bool


class HarnessRefused(Exception):
    """A definite no (4xx, an invalid answer): dead at once, reason `harness-refused`."""


class Harness(Protocol):
    """One assistant backend. `shared.errors.Transient`: had no effect, may be tried again (could not connect, 429,
    5xx). `shared.errors.EffectUnknown`: broken after the request was written. `HarnessRefused`: a definite no."""

    @property
    def idempotent(self) -> bool:
        """May a turn be repeated with the same id?"""
        ...

    async def ask(self, turn: Turn, on_event: Callable[[TurnEvent], None]) -> Answer:
        """Run the turn. The caller limits the time and cancels by cancelling the task."""
        ...

    async def resume(self, turn: Turn, url: str, on_event: Callable[[TurnEvent], None]) -> Answer:
        """Go on polling a turn that another worker started; only after `TurnAccepted`."""
        ...

    async def cancel(self, turn: Turn, url: str | None) -> None:
        """Tell the backend to stop; best effort, never raises."""
        ...

    async def answer(self, turn: Turn, question: Question, text: str, on_event: Callable[[TurnEvent], None]) -> Answer:
        """Give the asker's answer to an open question and get the rest of the turn."""
        ...

    async def history(self, session: str, before_ms: int, limit: int) -> HistoryPage:
        """At most `limit` lines of a session that are older than `before_ms`, newest first."""
        ...
