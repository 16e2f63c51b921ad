"""The limits of the mock channel: generous ones of our own, since there is no platform."""

from typing import Final

from shared.channels.port import Limits

LIMITS: Final = Limits(
    text_units=4000,
    unit="code_points",
    per_chat=(1000, 1.0),
    per_account=(10_000, 1.0),
    dedupe_s=86_400,  # what every channel without an own figure has (behaviour.md, section 1)
)
