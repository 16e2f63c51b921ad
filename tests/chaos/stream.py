"""A messenger as platforms are: what was not acknowledged is delivered again, and nothing later overtakes it."""

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.client import HTTPException
from itertools import count
from typing import Any

from tests.platforms.emulator import post

BATCH = 10
AGAIN_S = 0.1
"""Between two deliveries of what was refused, and between two looks at a depth that is reached."""


def events(name: str, people: int, rng: random.Random) -> Iterator[dict[str, Any]]:
    """Private messages `pN:K` without end, K counting in each conversation; every fourth quotes something. `name` keeps
    the ids of two runs apart."""
    so_far: Counter[str] = Counter()
    for number in count():
        sender = f"p{rng.randrange(people)}"
        so_far[sender] += 1
        event: dict[str, Any] = {
            "message_id": f"{name}-{number}",
            "sender": sender,
            "text": f"{sender}:{so_far[sender]}",
        }
        if number % 4 == 0:
            event["reply_to"] = {"message_id": "q1", "content": "low water at nine"}
        yield event


class Stream(threading.Thread):
    """Delivers to `hook` from `start` to `finish`, while less than `most` messages are known to be under way (`depth`,
    None while the server does not say: a platform would not wait for it either).

    acknowledged: event ids, and when, by the monotonic clock. refused: other answers, by status or error. pressing:
    while True it delivers whatever is under way.
    """

    def __init__(self, hook: str, source: Iterator[dict[str, Any]], depth: Callable[[], int | None], most: int) -> None:
        super().__init__(name="stream")
        self.acknowledged: dict[str, float] = {}
        self.refused: Counter[str] = Counter()
        self.pressing = False
        self._hook = hook
        self._source = source
        self._depth = depth
        self._most = most
        self._ending = threading.Event()
        self._given_up = threading.Event()

    def run(self) -> None:
        """Until `finish`."""
        while not self._ending.is_set():
            depth = self._depth()
            if depth is not None and depth >= self._most and not self.pressing:
                self._ending.wait(AGAIN_S)
                continue
            batch = [next(self._source) for _ in range(BATCH)]
            while not self._delivered(batch):
                if self._given_up.wait(AGAIN_S):
                    return
            now = time.monotonic()
            self.acknowledged |= {event["message_id"]: now for event in batch}

    def _delivered(self, batch: list[dict[str, Any]]) -> bool:
        try:
            status = post(self._hook, json.dumps(batch).encode(), {})
        except (OSError, HTTPException) as error:
            self.refused[type(error).__name__] += 1
            return False
        if status != 200:
            self.refused[str(status)] += 1
        return status == 200

    def finish(self, within_s: float) -> None:
        """No new messages; what was begun is delivered. Fails where it could not be."""
        self._ending.set()
        self.join(within_s)
        self._given_up.set()
        alive = self.is_alive()
        self.join()
        assert not alive, f"the last messages were never taken: {self.refused}"
