"""W3C trace context in one header's form; it travels in the envelope so that dead letters keep it.

No exporter and no OpenTelemetry: the ids are what logs, decision records and a tracer of the user's own agree on.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

# https://www.w3.org/TR/trace-context/#traceparent-header: lower-case hex; ff is no version, all zeros no id.
_FORM: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


@dataclass(frozen=True, slots=True)
class TraceParent:
    """`trace_id` 32 hex digits, `span_id` 16, `sampled` the last bit of the flags."""

    trace_id: str
    span_id: str
    sampled: bool = True

    def __str__(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.sampled else '00'}"


def parse(text: str) -> TraceParent | None:
    """The trace context that `text` carries, or None when it is none (then a new trace is started)."""
    found = _FORM.fullmatch(text)
    if found is None or (text.startswith("00") and found[4]):
        return None
    return TraceParent(found[1], found[2], bool(int(found[3], 16) & 1))


def new(random_bytes: Callable[[int], bytes]) -> TraceParent:
    """A new trace; `random_bytes(n)` gives n bytes (`os.urandom`, or `Random(seed).randbytes` in tests)."""
    drawn = random_bytes(24)
    return _nonzero(drawn[:16].hex(), drawn[16:].hex())


def of_envelope(envelope_id: str, replay: int = 0) -> TraceParent:
    """The trace of an envelope, always the same for the same id. Each replay (1, 2, …) is a trace of its own."""
    digest = hashlib.sha256(f"{envelope_id}\x1f{replay}".encode()).hexdigest()
    return _nonzero(digest[:32], digest[32:48])


def child(parent: TraceParent, name: str) -> TraceParent:
    """A span of the same trace, e.g. a stage's: always the same for the same parent and name."""
    return _nonzero(parent.trace_id, hashlib.sha256(f"{parent}\x1f{name}".encode()).hexdigest()[:16], parent.sampled)


def _nonzero(trace_id: str, span_id: str, sampled: bool = True) -> TraceParent:
    # All zeros is how the standard spells "no id".
    if not int(trace_id, 16):
        trace_id = trace_id[:-1] + "1"
    if not int(span_id, 16):
        span_id = span_id[:-1] + "1"
    return TraceParent(trace_id, span_id, sampled)
