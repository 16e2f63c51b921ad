"""A harness over HTTP that is not idempotent: it does what it is asked each time, and keeps count."""

import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.platforms.callback import Callback
from tests.platforms.emulator import Answer, Asked, Emulator


class Harness(Emulator):
    """Answers `re: TEXT`. `delay`: how long a turn takes, seconds. `out`: while True every turn is refused with 503,
    which the contract says had no effect, so it is not counted as a call.

    calls: by Idempotency-Key, in the order of their first. turns: the bodies, in order. first_s: when each key was
    asked for the first time, by the monotonic clock.
    """

    def __init__(self, delay: Callable[[], float]) -> None:
        self.calls: Counter[str] = Counter()
        self.turns: list[dict[str, Any]] = []
        self.first_s: dict[str, float] = {}
        self.out = False
        self.refused = 0
        self.delay = delay
        super().__init__()

    def handle(self, asked: Asked) -> Answer:
        if asked.path != "/turns":
            return Answer()
        turn, key = asked.json(), asked.headers["idempotency-key"]
        with self.changed:
            if self.out:
                self.refused += 1
                self.changed.notify_all()
                return Answer(503, {"error": "out of order"})
            self.calls[key] += 1
            self.turns.append(turn)
            self.first_s.setdefault(key, time.monotonic())
            self.changed.notify_all()
        self.closing.wait(self.delay())
        return Answer(body={"parts": [{"type": "text", "text": f"re: {turn['text']}"}]})

    def forget(self) -> None:
        """Begin to count anew."""
        with self.changed:
            self.calls.clear()
            self.turns.clear()
            self.first_s.clear()


class Chat(Callback):
    """The members' side of the mock channel. first_s: when each nonce was sent for the first time, monotonic."""

    def __init__(self, delay_s: float = 0.0) -> None:
        self.first_s: dict[str, float] = {}
        super().__init__(delay_s)

    def handle(self, asked: Asked) -> Answer:
        nonce = asked.json().get("nonce")
        if nonce is not None:
            self.first_s.setdefault(nonce, time.monotonic())
        return super().handle(asked)

    def forget(self) -> None:
        """Begin to count anew."""
        with self.changed:
            self.sends.clear()
            self.first_s.clear()


def between(low_ms: int, high_ms: int, seed: int) -> Callable[[], float]:
    """Delays drawn evenly from a span, in seconds."""
    rng = random.Random(seed)
    return lambda: rng.randint(low_ms, high_ms) / 1000
