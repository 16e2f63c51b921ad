"""Whether something may be sent, and what becomes of it afterwards. Pure (behaviour.md, section 5)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from shared.channels.port import Delivery
from shared.outcome import Dead, Finish, Outcome, Park, Retry

LedgerState: TypeAlias = Literal["intent", "sent", "not-sent", "unknown"]


@dataclass(frozen=True, slots=True)
class SendFacts:
    """What `can_send` looks at. exempt: the channel named exactly `mock`."""

    paused: bool
    read_only: bool
    safe_mode: bool
    admitted: bool
    exempt: bool = False


def can_send(facts: SendFacts) -> Outcome | None:
    """None when it may be sent. Order of reasons: paused, read-only-mode, safe-mode, access. Paused is a wait."""
    if facts.paused:
        return Park("pause", "paused")
    if not facts.exempt and facts.read_only:
        return Finish("skipped", "read-only-mode")
    if not facts.exempt and facts.safe_mode:
        return Finish("skipped", "safe-mode")
    return None if facts.admitted else Finish("denied", "access")


def next_part(ledger: Mapping[int, LedgerState], parts: int) -> int | Literal["done", "unknown"]:
    """The first part to send, `done`, or `unknown`: an intent or send whose end nobody knows is never repeated."""
    for number in range(parts):
        match ledger.get(number):
            case "sent":
                continue
            case "intent" | "unknown":
                return "unknown"
            case _:
                return number
    return "done"


def after(delivery: Delivery) -> Outcome | None:
    """What one send comes to for the whole record; None: go on with the next part."""
    match delivery.state:
        case "sent":
            return None
        case "unknown":
            return Dead("delivery-unknown", delivery.reason)
        case "not-sent" if delivery.retry and delivery.retry_after_s is not None:
            return Retry("rate-limited", delivery.retry_after_s, counts=False)
        case "not-sent" if delivery.retry:
            return Retry("not-connected")
        case "not-sent" if delivery.reason in ("read-only-mode", "safe-mode"):
            return Finish("skipped", delivery.reason)
        case "not-sent":
            return Dead("delivery-refused", delivery.reason)


def waited_too_long(now_ms: int, made_ms: int, give_up_s: float) -> bool:
    """True when a record is so old that waiting for a rate limit any longer is giving up."""
    return now_ms - made_ms > give_up_s * 1000
