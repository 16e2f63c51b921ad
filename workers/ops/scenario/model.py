"""A scenario as values: what a document says, with every time in integer milliseconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from shared.message import ChatType

Turned: TypeAlias = Literal["completed", "failed", "aborted"]
PlatformError: TypeAlias = Literal["refused", "timeout", "connection", "invalid"]
ScriptedCall: TypeAlias = Literal["get_message", "verify", "send", "identity"]

START_MS = 1_788_235_200_000
"""2026-09-01T12:00:00+08:00, the start of a scenario's clock that names none (Unix ms)."""

DRAW = 0.99
"""The draw of a scenario that names none."""


@dataclass(frozen=True, slots=True)
class At:
    """When a step begins: `offset_ms` after the previous one, unless `time_ms` (Unix ms) is given."""

    offset_ms: int = 0
    time_ms: int | None = None

    def resolve(self, previous_ms: int) -> int:
        """The time in Unix ms, never before the previous step's."""
        return max(previous_ms, previous_ms + self.offset_ms if self.time_ms is None else self.time_ms)


@dataclass(frozen=True, slots=True)
class SaidQuote:
    """`reply_to` of a `say`. `parts` are the loosely typed keys; `sent_at_ms` is Unix ms."""

    parts: Mapping[str, Any]
    sent_at_ms: int | None = None
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Say:
    """A message in the normalised form. `sent_ms`: the event's own time, Unix ms."""

    account: str
    chat: str
    sender: str
    text: str = ""
    name: str | None = None
    chat_type: ChatType | None = None
    thread: str | None = None
    message_id: str | None = None
    mentions_bot: bool | None = None
    mentions_all: bool = False
    mentions: tuple[str, ...] = ()
    sender_is_bot: bool = False
    system: bool = False
    attachments: tuple[Mapping[str, Any], ...] = ()
    reply_to: SaidQuote | None = None
    ocr: Mapping[str, Any] | None = None
    sent_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Burst:
    """Several messages at one instant, in ticket order."""

    says: tuple[Say, ...]


@dataclass(frozen=True, slots=True)
class Receive:
    """A platform's event: `event` for the channel's parser, or `raw` (the body) for the webhook."""

    account: str
    event: Any = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class Redeliver:
    """The event of an earlier step (counted from 1) again, or its wake-up."""

    step: int
    by: Literal["platform", "broker"]


@dataclass(frozen=True, slots=True)
class Fault:
    """In the next step the worker dies at this point."""

    point: str


@dataclass(frozen=True, slots=True)
class Send:
    """A proactive message."""

    account: str
    chat: str
    text: str
    thread: str | None = None


@dataclass(frozen=True, slots=True)
class Restart:
    """The processes of a stage, or `all`, start anew."""

    what: str


@dataclass(frozen=True, slots=True)
class Cli:
    """A command line, without the program's name."""

    args: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Http:
    """A request of the admin API."""

    method: str
    path: str
    body: Any = None
    role: Literal["viewer", "operator", "none"] = "operator"


@dataclass(frozen=True, slots=True)
class Set:
    """Switches (read_only, safe_mode, paused) and account keys that an operator changes at run time."""

    switches: Mapping[str, bool]
    accounts: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Replay:
    """Dead letters that match stage, reason, channel and account are replayed."""

    filter: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Approve:
    """A draft is approved: its id, or `last`."""

    draft: str


@dataclass(frozen=True, slots=True)
class Reject:
    """A draft is rejected: its id, or `last`."""

    draft: str


@dataclass(frozen=True, slots=True)
class Advance:
    """Only time passes, `ms` milliseconds."""

    ms: int


Action: TypeAlias = (
    Say | Burst | Receive | Redeliver | Fault | Send | Restart | Cli | Http | Set | Replay | Approve | Reject | Advance
)


@dataclass(frozen=True, slots=True)
class Step:
    """One item of `steps`. `number` counts from 1. `expect` is the table of expectations as it was written."""

    number: int
    action: Action
    at: At = field(default_factory=At)
    expect: Mapping[str, Any] = field(default_factory=dict[str, Any])
    line: int | None = None


@dataclass(frozen=True, slots=True)
class GivenEntry:
    """An entry of the outbound index, times in Unix ms."""

    account: str
    scope: str
    text: str
    sent_at_ms: int
    completed_at_ms: int
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GivenLine:
    """A message of a harness session, `at_ms` in Unix ms."""

    role: Literal["user", "assistant", "system"]
    text: str
    at_ms: int
    turn: Turned = "completed"


@dataclass(frozen=True, slots=True)
class GivenSession:
    """A harness session bound to a conversation, newest message last."""

    account: str
    chat: str
    thread: str | None
    lines: tuple[GivenLine, ...]


@dataclass(frozen=True, slots=True)
class GivenFrozen:
    """A turn that was frozen before."""

    account: str
    message_id: str
    text: str
    prompt: str


@dataclass(frozen=True, slots=True)
class Given:
    """The facts before the first step."""

    index: tuple[GivenEntry, ...] = ()
    sessions: tuple[GivenSession, ...] = ()
    frozen: tuple[GivenFrozen, ...] = ()


@dataclass(frozen=True, slots=True)
class PlatformAnswer:
    """What a platform answers. `returns` counts only where `has_returns`; `times` None: always."""

    account: str
    call: ScriptedCall
    id: str | None = None
    returns: Any = None
    has_returns: bool = False
    status: int | None = None
    error: PlatformError | None = None
    times: int | None = None
    retry_after_ms: int | None = None


@dataclass(frozen=True, slots=True)
class HarnessReply:
    """What the harness does on one call. `text` None with no error and no question: the current text is echoed."""

    text: str | None = None
    delay_ms: int = 0
    error: Literal["transient", "permanent"] | None = None
    question: str | None = None
    options: tuple[str, ...] = ()
    approval: bool = False


@dataclass(frozen=True, slots=True)
class HarnessScript:
    """The harness's replies, in order, the last repeats."""

    replies: tuple[HarnessReply, ...] = (HarnessReply(),)
    history_delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class Scenario:
    """One document. `config` is as written; `verdicts` None: no judge."""

    file: str
    number: int
    name: str
    ref: str
    now_ms: int
    random: tuple[float, ...]
    config: Mapping[str, Any]
    given: Given
    platform: tuple[PlatformAnswer, ...]
    harness: HarnessScript
    verdicts: tuple[Mapping[str, Any], ...] | None
    steps: tuple[Step, ...]
    config_error: tuple[str, ...] = ()
