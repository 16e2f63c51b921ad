"""What a stage can say about a message: a closed union, matched exhaustively by the runner."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

Stage: TypeAlias = Literal["admission", "engagement", "judge", "quotes", "dispatch", "delivery"]
STAGES: tuple[Stage, ...] = get_args(Stage)

Disposition: TypeAlias = Literal[
    "answered",  # a turn ran, its reply was delivered
    "replied",  # a fixed reply without the model
    "command",
    "interaction",  # consumed as an answer to a question or an approval
    "collected",  # taken into a batch
    "silenced",
    "throttled",
    "duplicate",
    "conflict",
    "denied",
    "ignored",
    "skipped",  # read-only, safe mode, send-off
    "held",
    "cancelled",
    "joined",
    "dead",
]
DISPOSITIONS: tuple[Disposition, ...] = get_args(Disposition)

Wait: TypeAlias = Literal["lane", "order", "joining", "question", "breaker", "pause"]
WAITS: tuple[Wait, ...] = get_args(Wait)


@dataclass(frozen=True, slots=True)
class Forward:
    """Go on to `stage`; `reason` is what the decision record says."""

    stage: Stage
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Finish:
    """The end, with the one disposition and a reason from `shared.reasons`."""

    disposition: Disposition
    reason: str


@dataclass(frozen=True, slots=True)
class Park:
    """Wait for something that is not time: `why` names it."""

    why: Wait
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Retry:
    """Try this stage again. `after_s` is what the other side asked for, in seconds; None: our backoff."""

    reason: str
    after_s: float | None = None
    counts: bool = True


@dataclass(frozen=True, slots=True)
class Dead:
    """Give up and keep it as a dead letter. `error` is an error class and text, never message text."""

    reason: str
    error: str = field(default="")


Outcome: TypeAlias = Forward | Finish | Park | Retry | Dead
