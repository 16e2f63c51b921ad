"""Whether something may be sent, and what becomes of it afterwards. Pure (behaviour.md, section 5)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from shared.channels.port import Delivery, Limits
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


def window_closed(limits: Limits, received_ms: int, now_ms: int, number: int) -> Outcome | None:
    """The end of an answer whose part `number` the platform would refuse: the message that it answers is too old, or
    has had all the replies that it may get. None while the part may be sent."""
    late = 0 < limits.reply_window_s * 1000 < now_ms - received_ms
    full = 0 < limits.replies <= number
    return _closed(number) if late or full else None


def _closed(number: int) -> Finish:
    """What was said stays said; of an answer nothing of which was said nothing is."""
    return Finish("answered" if number else "skipped", "window-closed")


def after(delivery: Delivery, number: int) -> Outcome | None:
    """What the send of part `number` comes to for the whole record; None: go on with the next part."""
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
        case "not-sent" if delivery.reason == "window-closed":
            return _closed(number)
        case "not-sent":
            return Dead("delivery-refused", delivery.reason)


def waited_too_long(now_ms: int, made_ms: int, give_up_s: float) -> bool:
    """True when a record is so old that waiting for a rate limit any longer is giving up."""
    return now_ms - made_ms > give_up_s * 1000
