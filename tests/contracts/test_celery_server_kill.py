"""The chosen Celery lives through kill -9 of its server under load (docs/celery-version.md)."""

import os
import signal
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.contracts.celery_support import Worker, eventually, key, message, server, worker

PUSHES_PER_S = 30
KILLS = 2


class _Load(threading.Thread):
    """Pushes wake-ups that take 50 ms each until it is stopped; a server that is away makes it try again."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._stopped = threading.Event()

    def run(self) -> None:
        number = 0
        with redis.Redis.from_url(self._url, retry=Retry(NoBackoff(), 0)) as client:
            while not self._stopped.wait(1 / PUSHES_PER_S):
                try:
                    client.lpush(key(), message(f"slow-{number}"))
                except redis.RedisError:
                    continue
                number += 1

    def stop(self) -> None:
        self._stopped.set()
        self.join()


@pytest.mark.slow
@pytest.mark.parametrize(("pool", "concurrency"), [("solo", 1), ("threads", 2)])
def test_a_worker_lives_through_two_kills_of_its_server_under_load(pool: str, concurrency: int, tmp_path: Path) -> None:
    folder = tmp_path / "broker"
    with ExitStack() as stack:
        log = stack.enter_context(server(tmp_path / "log"))
        broker = stack.enter_context(server(folder, durable=True))
        ours = stack.enter_context(worker(broker.url, log.url, pool, concurrency, tmp_path))
        load = _Load(broker.url)
        stack.callback(load.stop)
        load.start()
        for _ in range(KILLS):
            _ran_beyond(ours, len(ours.seen("ran")) + 10)
            complaints = ours.errors.stat().st_size
            os.kill(broker.pid, signal.SIGKILL)
            eventually(lambda: ours.errors.stat().st_size > complaints)  # noqa: B023
            broker = stack.enter_context(server(folder, durable=True))
            # More than the worker could still have had in its hands: it consumes from the new server.
            _ran_beyond(ours, len(ours.seen("ran")) + concurrency + 5)
        assert ours.alive()


def _ran_beyond(ours: Worker, count: int) -> None:
    eventually(lambda: len(ours.seen("ran")) > count or not ours.alive())
    assert ours.alive(), ours.errors.read_text()
