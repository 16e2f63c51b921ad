"""A whole Millstream of real processes on loopback: a server, workers, keeper, ingest; and what became of it all."""

import asyncio
import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from ingest.port import Overloaded, Unavailable
from ingest.publisher import Publisher
from shared.channels import channel
from shared.process import Process, build
from shared.redis.embedded import Embedded, Kind
from shared.settings import Settings, from_mapping

KINDS: list[Kind] = ["redis-server", "valkey-server", "wheel"]
ROOT = Path(__file__).parents[2]
STAGES = ("admission", "engagement", "quotes", "dispatch", "delivery")
READY_S = 60.0


def eventually(holds: Callable[[], Any], within_s: float = 60, what: str = "") -> Any:
    """Look until `holds()` is true, and give what it gave; fails beyond `within_s`."""
    deadline = time.monotonic() + within_s
    while not (found := holds()):
        assert time.monotonic() < deadline, f"did not come about within {within_s} s: {what}"
        time.sleep(0.02)
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass
class Child:
    """One process of the system under test."""

    stage: str
    pid: int
    log: Path
    fault: str = ""

    def alive(self) -> bool:
        # The nursery's kernel reaps it: gone means gone.
        with suppress(ProcessLookupError):
            os.kill(self.pid, 0)
            return True
        return False

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        eventually(lambda: not self.alive(), 10, f"end of {self.stage} {self.pid}")

    def ready(self) -> bool:
        return "ready" in self.log.read_text() if self.log.exists() else False


@dataclass
class World:
    """Settings, server, the test's own connection to it, and every child that was started."""

    folder: Path
    settings: Settings
    server: Embedded
    process: Process
    nursery: subprocess.Popen[str]
    children: list[Child] = field(default_factory=list[Child])
    seen: int = 0

    def __post_init__(self) -> None:
        self.publisher = Publisher(
            self.process.client,
            self.process.scripts,
            lambda: self.settings,
            self.process.clock.now_ms,
            self.process.partitions,
        )

    @property
    def config(self) -> Path:
        return self.folder / "config.json"

    def start(self, *stages: str, fault: str = "", nth: int = 1, **more: Any) -> list[Child]:
        """Start one process for each name, and wait until all are ready. `more`: see tests/chaos/worker.py."""
        made: list[Child] = []
        for stage in stages:
            self.seen += 1
            log = self.folder / f"{self.seen:03}-{stage}.log"
            order = {"stage": stage, "config": str(self.config), "log": str(log), "fault": fault, "nth": nth, **more}
            assert self.nursery.stdin is not None
            assert self.nursery.stdout is not None
            print(json.dumps(order), file=self.nursery.stdin, flush=True)
            made.append(Child(stage, int(self.nursery.stdout.readline()), log, fault))
        self.children += made
        for child in made:
            eventually(lambda c=child: c.ready() or not c.alive(), READY_S, f"{child.stage} ready")
            assert child.ready(), child.log.read_text()
        return made

    def hook(self, account: str) -> str:
        """Where an account's platform posts to; for a world with an ingest process."""
        return f"http://127.0.0.1:{self.settings.ingest.port}/hooks/{account}"

    def living(self) -> list[Child]:
        return [child for child in self.children if child.alive()]

    def accept(self, events: Sequence[dict[str, Any]], account: str = "demo") -> list[str]:
        """Take mock events in through the publisher, one batch; the envelopes' ids. Raises what accept raises."""
        found = self.settings.account(account)
        assert found is not None
        messages = channel(found.channel).normalise(list(events), found)
        return list(asyncio.run(self.publisher.accept(messages, self.process.clock.now_ms())).ids)

    def insist(self, events: Sequence[dict[str, Any]], within_s: float = 60) -> list[str]:
        """As a platform does: again and again until they are acknowledged."""
        found: list[str] = []

        def taken() -> bool:
            try:
                found[:] = self.accept(events)
            except (Unavailable, Overloaded):
                return False
            return True

        eventually(taken, within_s, "acceptance")
        return found

    def record(self, id_: str) -> dict[str, str]:
        return self.process.client.hgetall(self.process.keys.record(id_))

    def depth(self) -> int:
        return int(self.process.client.hget(self.process.keys.depth, "*") or 0)

    def at_rest(self) -> bool:
        """Nothing is alive and nothing is held, but by the keeper."""
        held = set(self.process.client.hkeys(self.process.keys.held))
        return (
            self.depth() == 0 and held <= {"keeper"} and not self.process.client.zcard(self.process.keys.at("delivery"))
        )

    def rest(self, within_s: float) -> None:
        """Wait until everything has ended; where it does not, say what stands where."""
        try:
            eventually(self.at_rest, within_s, "rest")
        except AssertionError:
            print(self.left())
            print(self.words())
            raise

    def left(self) -> dict[str, Any]:
        """What should be empty in the end and is not."""
        client, keys = self.process.client, self.process.keys
        found: dict[str, Any] = {}
        for key in client.scan_iter(f"{keys.prefix}at:*", count=1000):
            found[key] = [
                (i, self.record(i).get("takeovers"), self.record(i).get("log")) for i in client.zrange(key, 0, 4)
            ]
        for key in client.scan_iter(f"{keys.prefix}lane:*", count=1000):
            found[key] = client.hgetall(key) if client.type(key) == "hash" else client.zrange(key, 0, -1)
        found["depth"] = {k: v for k, v in client.hgetall(keys.depth).items() if v != "0"}
        found["held"] = {k: v for k, v in client.hgetall(keys.held).items() if k != "keeper"}
        found["guests"] = client.hgetall(keys.guests)
        return {k: v for k, v in found.items() if v}

    def words(self, most: int = 4000) -> str:
        """The ends of the logs that say more than `ready`."""
        texts = [(c.log.name, c.log.read_text()) for c in self.children if c.log.exists()]
        return "\n".join(f"--- {name}\n{text[-most:]}" for name, text in texts if len(text) > 60)

    def dispositions(self, ids: Sequence[str]) -> Counter[str]:
        """How the messages ended: `answered`, `dead:REASON`, `duplicate`, …, or `at PLACE` and `gone`."""
        with self.process.client.pipeline(transaction=False) as pipe:
            for id_ in ids:
                pipe.hmget(self.process.keys.record(id_), "place", "disposition", "reason")
            rows = pipe.execute()
        return Counter(_end(*row) for row in rows)

    def tickets(self, ids: Sequence[str]) -> dict[str, int]:
        with self.process.client.pipeline(transaction=False) as pipe:
            for id_ in ids:
                pipe.hget(self.process.keys.record(id_), "ticket")
            return {id_: int(raw) for id_, raw in zip(ids, pipe.execute(), strict=True) if raw}


def _end(place: str | None, disposition: str | None, reason: str | None) -> str:
    if place is None:
        return "gone"
    if place != "ended":
        return f"at {place}"
    return f"dead:{reason}" if disposition == "dead" else str(disposition)


@contextmanager
def server(folder: Path, durable: bool = False, kinds: Sequence[Kind] = KINDS) -> Generator[Embedded]:
    with Embedded.start(folder, durable=durable, kinds=kinds) as running:
        yield running


@contextmanager
def world(folder: Path, on: Embedded, **tables: Any) -> Generator[World]:
    """A world with the given tables of the configuration, quick in everything that waits for a dead worker."""
    data = {
        "log": {"level": "warning", "format": "json"},
        "metrics": {"port": free_port()},
        "ingest": {"port": free_port()},
        **tables,
    }
    data["redis"] = {"prefix": f"{folder.name}:", "url": on.url}  # worlds may share a server
    data["pipeline"] = {"lease_s": 3, "claim_s": 2, "reconcile_s": 1, **tables.get("pipeline", {})}
    settings = from_mapping(data)
    (folder / "config.json").write_text(json.dumps(data))
    made = World(folder, settings, on, build(settings), nursery())
    try:
        yield made
    finally:
        for child in made.living():
            child.kill()
        made.process.client.close()


@cache
def nursery() -> subprocess.Popen[str]:
    """The program that all worlds of this test process fork their children from. It ends with this process."""
    made = subprocess.Popen(
        [sys.executable, "-m", "tests.chaos.worker", "serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )
    atexit.register(made.communicate, timeout=20)
    return made
