"""What every networked harness has to read: a wait that the other side asks for, and text that can be stored."""

import math
from datetime import UTC
from email.utils import parsedate_to_datetime

ANSWER_BYTES = 1_048_576
"""Largest answer that is read, the same 1 MiB that a webhook may have (configuration.md, ingest.max_body_bytes)."""


def retry_after_s(value: str | None, now_ms: int) -> float | None:
    """Seconds to wait by a `Retry-After` header (RFC 9110, section 10.2.3): a number or an HTTP date. None: not said,
    or not readable. Never negative."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
        except ValueError:
            return None
        # A date in the form "-0000" has no zone; the RFC means UTC.
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now_ms / 1000
    return max(0.0, seconds) if math.isfinite(seconds) else None


def storable(text: str) -> str:
    """`text` with surrogate pairs put together (a stream may tear them apart) and lone halves replaced by U+FFFD, which
    no UTF-8 writer would take."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
