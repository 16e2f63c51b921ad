"""What may go wrong in one seed, and how often. Every seed has its own mixture, so that a rare fault is not always
drowned in others."""

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mix:
    """Shares of the driver's steps, unless it says otherwise.

    loss, twice, mess: of wake-ups, lost, doubled, taken out of order. calls: of calls of the server, failing. spoils:
    of moves, failing inside. harness, platform: of calls outside, misbehaving. stops, sayings: of messages, `/stop` and
    others that rules speak of. skew_ms: how far a process's clock may be off. scan: the keeper looks at records one by
    one as well. leisure: time flies.
    """

    loss: float = 0.0
    twice: float = 0.0
    mess: float = 0.0
    kills: float = 0.0
    freezes: float = 0.0
    turns: float = 0.0
    calls: float = 0.0
    harness: float = 0.0
    platform: float = 0.0
    stops: float = 0.0
    sayings: float = 0.3
    skew_ms: int = 0
    rollbacks: float = 0.0
    replays: float = 0.0
    spoils: float = 0.0
    full: float = 0.0
    scan: bool = False
    leisure: bool = False

    @property
    def gentle(self) -> bool:
        """No worker dies, stands still or is cut off: nothing needs to be taken over."""
        rough = self.kills or self.freezes or self.calls or self.rollbacks or self.spoils or self.full
        return not (rough or self.leisure)


def drawn(rng: random.Random) -> Mix:
    """The mixture of a seed."""
    pick = rng.choice
    return Mix(
        loss=pick((0.0, 0.05, 0.3)),
        twice=pick((0.0, 0.1)),
        mess=pick((0.0, 0.3)),
        kills=pick((0.0, 0.0, 0.01, 0.03)),
        freezes=pick((0.0, 0.0, 0.01)),
        turns=pick((0.0, 0.0, 0.01)),
        calls=pick((0.0, 0.0, 0.01, 0.04)),
        harness=pick((0.0, 0.2, 0.5)),
        platform=pick((0.0, 0.3, 0.6)),
        stops=pick((0.04, 0.04, 0.2)),
        sayings=pick((0.3, 0.3, 0.7)),
        skew_ms=pick((0, 0, 1000, 5000)),
        rollbacks=pick((0.0, 0.0, 0.0, 0.005)),
        replays=pick((0.0, 0.0, 0.02)),
        spoils=pick((0.0, 0.0, 0.0, 0.05)),
        full=pick((0.0, 0.0, 0.0, 0.005)),
        scan=pick((False, False, True)),
        leisure=pick((False, False, True)),
    )
