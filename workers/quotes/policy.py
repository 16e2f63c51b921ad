"""What was quoted: which evidence comes next, and what becomes of a quote that cannot be had. Pure.

The rules are behaviour.md, section 3: evidence in the table's order, one lookup, never a guess; under `evidence_only`
only explicit text in the payload counts.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from shared.harness.port import HistoryLine
from shared.message import Lookup, Provenance, ReplyReference
from shared.outcome import Finish, Forward, Outcome, Retry

Policy: TypeAlias = Literal["recover", "evidence_only"]
Step: TypeAlias = Literal["settled", "platform", "index", "history", "refuse"]
IndexHit: TypeAlias = Literal["id", "time", "twice", "none"]
"""What the outbound index says (`shared.index.Hit`)."""


def next_step(reference: ReplyReference | None, policy: Policy) -> Step:
    """What to do for a quote: it is `settled`, one kind of evidence is asked, or the fixed reply is due (`refuse`)."""
    if reference is None:
        return "settled"
    if policy == "evidence_only":
        return "settled" if _explicit(reference) else "refuse"
    return reference.lookup.via if reference.lookup is not None else "settled"


def ids_of(wanted: Lookup) -> tuple[str, ...]:
    """The ids under which the quoted message is looked for in the index, in the channel's order of trust."""
    return tuple(dict.fromkeys(id_ for id_ in (*wanted.keys, wanted.message_id) if id_))


def after_index(
    hit: IndexHit, quoted_at_ms: int | None, *, looks_back: bool
) -> Literal["found", "history", "unresolved"]:
    """What follows a look into the outbound index. An id that names two entries ends the search: whatever else was
    found would be a guess. looks_back: the channel searches the history next, for which a quoted time is needed."""
    if hit in ("id", "time"):
        return "found"
    return "history" if hit == "none" and looks_back and quoted_at_ms is not None else "unresolved"


def outcome(reference: ReplyReference | None, policy: Policy, *, admitted: bool, verified: bool) -> Outcome:
    """What becomes of the message once its quote is as good as it gets.

    admitted: access as it stands now. verified: False when the platform does not know the message as the event told it.
    """
    if not admitted:
        return Finish("denied", "access")
    if not verified:
        return Retry("source-verification-failed")
    if next_step(reference, policy) == "refuse":
        return Finish("replied", "quoted_text_unavailable")
    return Forward("dispatch", "none" if reference is None else "quoted_text_resolved")


def unresolved(reference: ReplyReference) -> ReplyReference:
    """The reference once nothing more can be asked: an honest mark instead of a lookup. What the channel knew of the
    quote's kind (unsupported) stays."""
    reason = reference.unavailable_reason or "not-delivered"
    return reference.model_copy(update={"lookup": None, "unavailable_reason": reason, "source": "none"})


def restored(reference: ReplyReference, text: str, source: Provenance) -> ReplyReference:
    """The reference with the text that was found, and where."""
    found = {"lookup": None, "content": text, "unavailable_reason": None, "source": source}
    return reference.model_copy(update=found)


def found_in_history(lines: Sequence[HistoryLine], ended: bool, quoted_at_ms: int, window_ms: int) -> str | None:
    """The one completed assistant reply that stands at the quoted time, or None.

    Accepted only when exactly one fits and either a line strictly older than the window was read or the history ended.
    """
    early, late = quoted_at_ms - window_ms, quoted_at_ms + window_ms
    if not ended and not any(line.at_ms < early for line in lines):
        return None
    fitting = [line.text for line in lines if _candidate(line) and _near(line, quoted_at_ms, early, late, window_ms)]
    return fitting[0] if len(fitting) == 1 else None


def read_on(lines: Sequence[HistoryLine], quoted_at_ms: int, window_ms: int) -> bool:
    """True while older lines could still hold a candidate."""
    return not any(line.at_ms < quoted_at_ms - window_ms for line in lines)


def _candidate(line: HistoryLine) -> bool:
    return line.role == "assistant" and line.turn == "completed" and line.last_of_turn


def _near(line: HistoryLine, at_ms: int, early: int, late: int, window_ms: int) -> bool:
    if early <= line.at_ms <= late:
        return True
    if line.turn_started_ms is None or line.turn_ended_ms is None:
        return False
    return line.turn_started_ms - window_ms <= at_ms <= line.turn_ended_ms + window_ms


def _explicit(reference: ReplyReference) -> bool:
    """Explicit text in the payload, or a confirmed image that goes the way of a current one (F-7)."""
    return reference.explicit_text or any(a.kind == "image" for a in reference.attachments)
