# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""Peer: five taskiq tasks that do nothing but send the next, a stream and a worker process for each."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import driver  # the others run in a virtual environment of their own
from taskiq.api import run_receiver_task
from taskiq_redis import RedisStreamBroker


class TaskiqChain:
    """Redis streams: the broker of taskiq that acknowledges after the work."""

    def __init__(self, ended: Callable[[str], None]) -> None:
        self._loop = asyncio.new_event_loop()
        self._brokers: list[Any] = [
            RedisStreamBroker(driver.URL, queue_name=f"q{step}", consumer_group_name=f"g{step}", consumer_id="0")
            for step in range(1, driver.STEPS + 1)
        ]
        self._tasks = [self._task(step, ended) for step in range(1, driver.STEPS + 1)]
        self._loop.run_until_complete(self._start())

    async def _start(self) -> None:
        for broker in self._brokers:
            await broker.startup()

    def _task(self, step: int, ended: Callable[[str], None]) -> Any:
        async def run(id_: str) -> None:
            if step == driver.STEPS:
                ended(id_)
            else:
                await self._tasks[step].kiq(id_)

        return self._brokers[step - 1].register_task(run, task_name=f"step{step}")

    def work(self, step: int) -> None:
        """A receiver in this process, as `taskiq worker` runs it."""
        self._loop.run_until_complete(run_receiver_task(self._brokers[step - 1]))

    def send(self, ids: Sequence[str]) -> None:
        """One message an id."""

        async def all_of_them() -> None:
            for id_ in ids:
                await self._tasks[0].kiq(id_)

        self._loop.run_until_complete(all_of_them())


if __name__ == "__main__":
    driver.main(TaskiqChain)
