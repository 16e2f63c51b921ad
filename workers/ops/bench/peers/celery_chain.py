"""Peer: a bare Celery chain of five no-op tasks, each acknowledged late, a queue and a solo worker process for each."""

from collections.abc import Callable, Sequence
from typing import Any

import driver  # pyright: ignore[reportMissingImports] - beside this file, when it runs
from celery import Celery, chain


class CeleryChain:
    """JSON, no results, no events, no gossip, prefetch 1: what makes Celery fast and loses nothing when a task dies."""

    def __init__(self, ended: Callable[[str], None]) -> None:
        app: Any = Celery("chain", broker=driver.URL)
        app.conf.update(
            task_acks_late=True,
            task_ignore_result=True,
            task_serializer="json",
            accept_content=["json"],
            worker_prefetch_multiplier=1,
            worker_send_task_events=False,
            task_send_sent_event=False,
            worker_enable_remote_control=False,
            broker_connection_retry_on_startup=True,
            broker_transport_options={"priority_steps": [0]},
        )
        self._app = app
        self._tasks = [self._task(step, ended) for step in range(1, driver.STEPS + 1)]

    def _task(self, step: int, ended: Callable[[str], None]) -> Any:
        def run(id_: str) -> str:
            if step == driver.STEPS:
                ended(id_)
            return id_

        return self._app.task(name=f"step{step}", ignore_result=True)(run)

    def work(self, step: int) -> None:
        """A solo worker: measured the fastest pool for tasks that do nothing."""
        self._app.worker_main([
            "--quiet", "worker", f"--queues=q{step}", f"--hostname=step{step}@bench", "--pool=solo",
            "--loglevel=WARNING", "--without-gossip", "--without-mingle", "--without-heartbeat",
        ])  # fmt: skip

    def send(self, ids: Sequence[str]) -> None:
        """One chain an id, over one connection."""
        for id_ in ids:
            steps = [task.s(*([id_] if n == 0 else [])).set(queue=f"q{n + 1}") for n, task in enumerate(self._tasks)]
            chain(*steps).apply_async()


if __name__ == "__main__":
    driver.main(CeleryChain)
