"""What becomes of a turn: before it is asked, after it was asked, and after its worker died. Pure.

ready -> running -> answered -> (delivery) -> sent            the diagram with every state is in the README
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from shared.outcome import Dead, Finish, Forward, Outcome, Retry

Ended: TypeAlias = Literal[
    "answer", "empty", "draft", "transient", "refused", "broken", "timeout", "stop", "drain", "bad-resume"
]


@dataclass(frozen=True, slots=True)
class Before:
    """What is known when a turn may start. Times in ms."""

    now_ms: int
    received_at_ms: int
    give_up_s: float
    refusal: str | None


def before(facts: Before) -> Outcome | None:
    """An outcome that forbids asking the harness, or None. In read-only no turn starts, and none is tried again."""
    if facts.refusal is not None:
        return Finish("skipped", facts.refusal)
    if facts.now_ms - facts.received_at_ms > facts.give_up_s * 1000:
        return Dead("gave-up")
    return None


def after(
    ended: Ended, *, idempotent: bool, probing: bool, after_s: float | None, open_s: float, error: str
) -> Outcome:
    """The outcome of one try. `probing`: it tested an open breaker, and failing uses up no attempt."""
    match ended:
        case "answer":
            return Forward("delivery", "answered")
        case "empty":
            return Finish("answered", "empty")
        case "draft":
            return Finish("held", "draft")
        case "transient":
            return _again(probing, after_s, open_s)
        case "broken":
            return _again(probing, after_s, open_s) if idempotent else Dead("effect-unknown", error)
        case "refused" | "bad-resume":
            return Dead("harness-refused", error)
        case "timeout":
            return Dead("turn-timeout", error)
        case "stop":
            return Finish("cancelled", "stop")
        case "drain":
            return Retry("handed-back", 0, counts=False)


def recovered(*, url: str, idempotent: bool, cancelled: bool) -> Outcome:
    """What becomes of a running turn whose worker died."""
    if cancelled:
        return Finish("cancelled", "stop")
    if url or idempotent:
        return Retry("taken-over", 0, counts=False)
    return Dead("effect-unknown", "the worker died while the harness had the turn")


def _again(probing: bool, after_s: float | None, open_s: float) -> Outcome:
    return Retry("harness-breaker", open_s, counts=False) if probing else Retry("harness-transient", after_s)
