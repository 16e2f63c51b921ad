"""Which claims and leases have run out. Pure: the keeper's own memory of what it has seen, and its monotonic clock."""

from collections.abc import Mapping
from dataclasses import dataclass

SHORT = frozenset({"admission", "engagement", "judge", "quotes"})
"""Stages whose claims last `claim_s`; everything else is a lease of `lease_s`."""


@dataclass(frozen=True, slots=True)
class Sight:
    """A holder's value (token, beat, ids) and since when it has not moved, in seconds of the monotonic clock."""

    value: str
    since: float


def length_s(name: str, claim_s: float, lease_s: float) -> float:
    """How long a holder of `name` may be silent."""
    return claim_s if name.split(":", 1)[0] in SHORT else lease_s


def watch(
    seen: Mapping[str, Sight], held: Mapping[str, str], now: float, claim_s: float, lease_s: float
) -> tuple[dict[str, Sight], list[str]]:
    """What is remembered from now on, and the names whose holder has been silent for its whole length.

    Only a silence that this process has watched from end to end counts: no other host's clock is believed.
    """
    sights = {
        name: seen[name] if name in seen and seen[name].value == value else Sight(value, now)
        for name, value in held.items()
    }
    out = [name for name, sight in sights.items() if now - sight.since > length_s(name, claim_s, lease_s)]
    return sights, out
