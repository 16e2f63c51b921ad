"""A real worker process for the Celery contracts, and what it tells: run as a program it is that process.

What happens is written to lists on a log server, apart from the broker where the broker is to be killed:
`seen:ready`, `seen:ran` (names, when they start), `seen:ended`, `seen:poison` (JSON). A name that begins with `hold`
blocks until something is pushed to `seen:release`; one that begins with `slow` takes 50 ms.
"""

import base64
import json
import logging
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from celery import Celery, signals

from shared.redis.embedded import Embedded, Kind
from shared.redis.wakeups import fill, queue_name, task_name, template
from workers.app import Pool, make_app, register, worker_argv

PREFIX = "t:"
STAGE = "judge"
KINDS: list[Kind] = ["redis-server", "valkey-server", "wheel"]
ROOT = Path(__file__).parents[2]


def key(stage: str = STAGE) -> str:
    return PREFIX + queue_name(stage)


def message(name: str, push_id: str = "", at_ms: int = 1_700_000_000_000, stage: str = STAGE) -> bytes:
    text = template(stage, queue_name(stage), task_name(stage))
    return fill(text, name, push_id or f"push-{name}", at_ms).encode()


def eventually(holds: Callable[[], bool], within_s: float = 30) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "did not come about"
        time.sleep(0.01)


@contextmanager
def server(folder: Path, durable: bool = False) -> Iterator[Embedded]:
    with Embedded.start(folder, durable=durable, kinds=KINDS) as running:
        yield running


@dataclass(frozen=True)
class Worker:
    process: subprocess.Popen[bytes]
    log: redis.Redis
    errors: Path

    def seen(self, what: str) -> list[str]:
        return [entry.decode() for entry in self.log.lrange(f"seen:{what}", 0, -1)]  # type: ignore[union-attr]

    def poison(self) -> list[dict[str, str]]:
        return [json.loads(entry) for entry in self.seen("poison")]

    def alive(self) -> bool:
        return self.process.poll() is None


@contextmanager
def worker(
    broker_url: str, log_url: str, pool: Pool, concurrency: int, folder: Path, kind: str = "ours"
) -> Iterator[Worker]:
    """A worker process, ready when this yields, ended by TERM or, if that does not end it, by KILL."""
    errors = folder / f"worker-{kind}-{pool}.log"
    arguments = [broker_url, log_url, pool, str(concurrency), kind]
    with redis.Redis.from_url(log_url) as log, errors.open("wb") as output:
        log.delete("seen:ready")
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.contracts.celery_support", *arguments],
            stdout=output,
            stderr=output,
            cwd=ROOT,
            start_new_session=True,
        )
        running = Worker(process, log, errors)
        try:
            eventually(lambda: bool(log.llen("seen:ready")) or not running.alive())
            assert running.alive(), errors.read_text()
            yield running
        finally:
            log.rpush("seen:release", *["go"] * 64)
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class _LogPoison:
    def __init__(self, log: Any) -> None:
        self._log = log

    def hot(self) -> bool:
        return False

    def poison(self, raw: bytes, queue: str, reason: str) -> None:
        entry = {"raw": base64.b64encode(raw).decode(), "queue": queue, "reason": reason}
        self._log.rpush("seen:poison", json.dumps(entry))


def _stock_app(broker_url: str) -> Celery:
    """Celery as it comes, told only where the lists are."""
    app = Celery("stock", broker=broker_url)
    app.conf.broker_transport_options = {"global_keyprefix": PREFIX}
    return app


def main(broker_url: str, log_url: str, pool: Pool, concurrency: int, kind: str) -> None:
    logging.basicConfig(level=logging.WARNING)
    log = redis.Redis.from_url(log_url, socket_timeout=None)  # its default would end a long BLPOP

    def run(name: str) -> None:
        log.rpush("seen:ran", name)
        if name.startswith("hold"):
            log.blpop(["seen:release"], timeout=60)
        elif name.startswith("slow"):
            log.blpop(["seen:nothing"], timeout=0.05)
        log.rpush("seen:ended", name)

    if kind == "stock":
        app = _stock_app(broker_url)
        app.task(name=task_name(STAGE))(run)
    else:
        app = make_app(broker_url, PREFIX, _LogPoison(log))
        register(app, STAGE, run)

    def ready(**_: Any) -> None:
        log.rpush("seen:ready", "ready")

    signals.worker_ready.connect(ready, weak=False)
    app.worker_main(worker_argv(STAGE, pool, concurrency, "contract"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])  # type: ignore[arg-type]
