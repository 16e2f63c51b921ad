# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""Peer: five Dramatiq actors that do nothing but send the next, a queue and a worker process for each."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import dramatiq  # runs in a virtual environment of its own
import driver
from dramatiq.brokers.redis import RedisBroker

THREADS = 8
"""Its own default. They pass each other, so this peer keeps no order."""


class DramatiqChain:
    """Dramatiq as it comes: its default middleware acknowledges after the work and retries."""

    def __init__(self, ended: Callable[[str], None]) -> None:
        self._broker: Any = RedisBroker(url=driver.URL)
        dramatiq.set_broker(self._broker)
        self._actors = [self._actor(step, ended) for step in range(1, driver.STEPS + 1)]

    def _actor(self, step: int, ended: Callable[[str], None]) -> Any:
        def run(id_: str) -> None:
            if step == driver.STEPS:
                ended(id_)
            else:
                self._actors[step].send(id_)

        return dramatiq.actor(run, actor_name=f"step{step}", queue_name=f"q{step}")

    def work(self, step: int) -> None:
        """A worker of one queue, without the master process of its command line."""
        dramatiq.Worker(self._broker, queues={f"q{step}"}, worker_threads=THREADS).start()
        while True:
            time.sleep(1)

    def send(self, ids: Sequence[str]) -> None:
        """One message an id."""
        for id_ in ids:
            self._actors[0].send(id_)


if __name__ == "__main__":
    driver.main(DramatiqChain)
