"""A harness over HTTP that is not idempotent: it does what it is asked each time, and keeps count."""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.platforms.emulator import Answer, Asked, Emulator


class Harness(Emulator):
    """Answers `re: TEXT`. `delay`: how long a turn takes, seconds. `out`: while True every turn is refused with 503,
    which the contract says had no effect, so it is not counted as a call.

    calls: by Idempotency-Key, in the order of their first. turns: the bodies, in order.
    """

    def __init__(self, delay: Callable[[], float]) -> None:
        self.calls: Counter[str] = Counter()
        self.turns: list[dict[str, Any]] = []
        self.out = False
        self.refused = 0
        self._delay = delay
        super().__init__()

    def handle(self, asked: Asked) -> Answer:
        if asked.path != "/turns":
            return Answer()
        turn = asked.json()
        with self.changed:
            if self.out:
                self.refused += 1
                self.changed.notify_all()
                return Answer(503, {"error": "out of order"})
            self.calls[asked.headers["idempotency-key"]] += 1
            self.turns.append(turn)
            self.changed.notify_all()
        self.closing.wait(self._delay())
        return Answer(body={"parts": [{"type": "text", "text": f"re: {turn['text']}"}]})


def between(low_ms: int, high_ms: int, seed: int) -> Callable[[], float]:
    """Delays drawn evenly from a span, in seconds."""
    rng = random.Random(seed)
    return lambda: rng.randint(low_ms, high_ms) / 1000
