"""What an answer of a platform means, the same for every channel (behaviour.md, sections 3 and 5). Pure."""

from collections.abc import Mapping

from shared.channels.port import Delivery, PlatformResponse
from shared.errors import MillstreamError, Refused, Transient
from shared.message import Lookup, ReplyReference, UnavailableReason

LONGEST_WAIT_S = 3600.0
"""The longest wait that we obey: Telegram's webhook facts name it as the platform's own bound for Retry-After."""

_BY_STATUS: dict[int, UnavailableReason] = {
    401: "permission-denied",
    403: "permission-denied",
    404: "not-found",
    410: "deleted",
}


def reason_of_status(status: int) -> UnavailableReason:
    """Why a looked-up message cannot be shown, by the HTTP status of the answer."""
    return _BY_STATUS.get(status, "not-delivered")


def unavailable(known: ReplyReference | None, wanted: Lookup, reason: UnavailableReason) -> ReplyReference:
    """The reference after a lookup that found nothing: the ids that the event told stay, everything else goes."""
    return ReplyReference(
        message_id=wanted.message_id,
        author_id=known.author_id if known else None,
        unavailable_reason=reason,
        source="lookup",
    )


def retry_after_s(value: object) -> float | None:
    """A wait in seconds from a header or a body; None when it is no number (a date is not used by these platforms)."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    try:
        seconds = float(value)
    except (ValueError, OverflowError):
        return None
    return min(max(seconds, 0.0), LONGEST_WAIT_S) if seconds == seconds else None  # NaN is unequal to itself


def header(headers: Mapping[str, str], name: str) -> str | None:
    """A header's value, whatever the spelling of its name."""
    return next((value for key, value in headers.items() if key.lower() == name), None)


def rate_limited(wait_s: float | None) -> Delivery:
    """The platform asks to wait: nothing was sent, and sending again is right."""
    return Delivery("not-sent", reason="rate-limited", retry=True, retry_after_s=wait_s)


def refused() -> Delivery:
    """A definite no."""
    return Delivery("not-sent", reason="delivery-refused")


def unknown() -> Delivery:
    """Sent or not: nobody can tell."""
    return Delivery("unknown", reason="delivery-unknown")


def sent(*ids: str) -> Delivery:
    """The platform took it and named it `ids`."""
    return Delivery("sent", ids=ids, reason="sent")


def of_error(error: MillstreamError) -> Delivery:
    """What an error of the network means for a send."""
    match error:
        case Transient():
            return Delivery("not-sent", reason="not-connected", retry=True, retry_after_s=error.retry_after_s)
        case Refused():
            return refused()
        case _:
            return unknown()


def of_status(response: PlatformResponse) -> Delivery | None:
    """What an HTTP status alone decides about a send; None for 2xx, where the body decides."""
    if 200 <= response.status < 300:
        return None
    if response.status == 429:
        return rate_limited(retry_after_s(header(response.headers, "retry-after")))
    return refused() if 400 <= response.status < 500 else unknown()


def raise_for_status(response: PlatformResponse) -> None:
    """For calls without an effect. Raises Transient (429, 5xx) or Refused (everything else but 2xx)."""
    if response.status == 429 or response.status >= 500:
        wait_s = retry_after_s(header(response.headers, "retry-after"))
        raise Transient(f"the platform answered {response.status}", wait_s)
    if not 200 <= response.status < 300:
        raise Refused(f"the platform answered {response.status}")
