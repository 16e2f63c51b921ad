"""The errors that cross a boundary of Millstream, each saying by its type what may be done next.

An exception is classified once, where it is caught: `Transient` may be tried again, everything else may not.
"""


class MillstreamError(Exception):
    """Base of every error that Millstream raises on purpose."""


class Malformed(MillstreamError):
    """An event, envelope or answer that cannot be read. The text never holds the input itself."""


class Unauthorised(MillstreamError):
    """A request whose signature, secret or time stamp does not hold (HTTP 401)."""


class Transient(MillstreamError):
    """A failure without any effect: the same thing may be tried again.

    `retry_after_s` is what the other side asked for, in seconds, or None.
    """

    def __init__(self, text: str, retry_after_s: float | None = None) -> None:
        super().__init__(text)
        self.retry_after_s = retry_after_s


class Refused(MillstreamError):
    """A definite no: trying the same thing again would be refused again."""


class EffectUnknown(MillstreamError):
    """The request was written and no answer came: the effect may have happened or not."""
