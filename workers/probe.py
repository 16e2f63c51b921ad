"""Fault points: every effect of the pipeline has a name, and a probe is told when it is reached.

In production nothing listens. A scenario counts the effects and lets a worker die at one; the chaos runs kill the
process there. A new effect is a new fault point: call `probe.point` where it happens.
"""

from typing import Protocol


class Probe(Protocol):
    """What listens at the fault points."""

    def point(self, name: str, id_: str = "") -> None:
        """The point `name` is reached, with the id it is about where that matters. May never return."""
        ...


class Silent:
    """Nobody listens."""

    def point(self, name: str, id_: str = "") -> None:
        """Do nothing."""
