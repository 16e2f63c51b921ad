"""Our pipeline under test: every process that `millstream up` runs, on a server of its own."""

import asyncio
import json
import socket
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from ingest.publisher import Publisher
from shared.channels import channel
from shared.message import Message
from shared.process import build
from shared.redis.embedded import Embedded
from shared.settings import load
from workers.ops.bench import programs
from workers.ops.bench.cpu import cpu_s, since
from workers.ops.bench.events import ACCOUNT, PEOPLE, SIGNED, Kind, event, person
from workers.ops.children import Child, end_all
from workers.ops.output import fail
from workers.ops.up import answers, children_of

STALLED_S: Final = 60.0
"""When nothing ended for so long, the rest is told as lost."""
UP_S: Final = 60.0
LOOK_S: Final = 0.02
SECRET: Final = "bench"  # noqa: S105 - signs invented events on loopback
BATCH: Final = 64
"""Messages that one accept call takes (`ingest.batch_max`)."""


@dataclass(frozen=True, slots=True)
class Shape:
    """processes: of each stage. workers, ingest: whether they run at all. bounded: keep the default bounds of lanes
    and backlog, which a benchmark of rates would only measure itself against."""

    processes: int = 1
    workers: bool = True
    ingest: bool = True
    bounded: bool = False


def free_port() -> int:
    """A port of loopback that nobody has just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Ours:
    """A context manager. `folder`: a new one is made below it. `callback`: where the mock channel posts answers; empty:
    an answer counts as sent without a request."""

    def __init__(self, folder: Path, shape: Shape | None = None, callback: str = "") -> None:
        self.shape = shape or Shape()
        self.folder = Path(tempfile.mkdtemp(dir=folder))
        self.polls = 0
        self._children: list[Child] = []
        self._runs = 0
        self._callback = callback
        self._ending = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as ending:
            self.server = ending.enter_context(Embedded.start(self.folder / "server", durable=False))
            self.log = ending.enter_context((self.folder / "processes.log").open("wb"))
            self.config = self.folder / "millstream.toml"
            self.environment: Mapping[str, str] = {"MILLSTREAM_REDIS__URL": self.server.url}
            self.config.write_text(_toml(self.shape, self._callback), encoding="utf-8")
            self.settings = load(self.config, self.environment)
            self.account = next(one for one in self.settings.accounts if one.id == ACCOUNT)
            self.process = build(self.settings)
            self.client = self.process.client
            ending.callback(self.client.close)
            self._begin(ending)
            self._ending = ending.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.close()

    def _begin(self, ending: ExitStack) -> None:
        ingest, workers, keeper = children_of(self.settings, self.config, log=self.log.fileno())
        for copy in range(1, self.shape.processes):
            workers = workers + [Child(f"{w.name} {copy}", w.args, w.grace_s, w.environment, w.log) for w in workers]
        wanted = (ingest if self.shape.ingest else []) + ((workers + keeper) if self.shape.workers else [])
        self._children = wanted
        ending.callback(end_all, wanted)
        for child in wanted:
            child.start()
        deadline = time.monotonic() + UP_S
        if self.shape.workers:
            self.accept([self.message("answered", "up", 0, 0)])
            if self.rest(UP_S):
                fail(f"the workers did not come up: see {self.log.name}")
        while self.shape.ingest and not answers(self.settings):
            if time.monotonic() > deadline:
                fail(f"ingest did not come up: see {self.log.name}")
            time.sleep(LOOK_S)

    @property
    def port(self) -> int:
        """Where webhooks go."""
        return self.settings.ingest.port

    def next_run(self) -> str:
        """A name for the next messages; ids of two runs never meet."""
        self._runs += 1
        return f"r{self._runs}"

    def message(self, kind: Kind, run: str, number: int, conversation: int) -> Message:
        """A message as the mock channel makes it."""
        [made] = channel("mock").normalise(event(kind, run, number, conversation), self.account)
        return made

    def accept(self, messages: Sequence[Message]) -> None:
        """Take messages in as a connector does, in batches."""

        async def all_of_them() -> None:
            publisher = self.publisher()
            for first in range(0, len(messages), BATCH):
                await publisher.accept(messages[first : first + BATCH], self.process.clock.now_ms())

        asyncio.run(all_of_them())

    def publisher(self) -> Publisher:
        """A publisher in this process; it belongs to the event loop that uses it."""
        process = self.process
        return Publisher(
            process.client, process.scripts, lambda: self.settings, process.clock.now_ms, process.partitions
        )  # fmt: skip

    def left(self) -> int:
        """Messages under way."""
        self.polls += 1
        return int(self.client.hget(self.process.keys.depth, "*") or 0)

    def rest(self, stalled_s: float = STALLED_S) -> int:
        """Wait until nothing is under way, or nothing has ended for `stalled_s`; how many still are."""
        least, deadline = self.left(), time.monotonic() + stalled_s
        while (left := self.left()) and time.monotonic() < deadline:
            if left < least:
                least, deadline = left, time.monotonic() + stalled_s
            time.sleep(LOOK_S)
        return left

    def cpu_s(self) -> float | None:
        """Processor time of all processes under test, the server among them, so far."""
        pids = [child.process.pid for child in self._children if child.process is not None]
        return cpu_s([self.server.pid, *pids])

    def load(self, kind: Kind, run: str, messages: int, conversations: int, connections: int = 64) -> dict[str, Any]:
        """Post webhooks from a process of its own and wait for the end of all; the load's answer,
        `until_end` (seconds from the first request to the last end) and `cpu_s` (computed meanwhile by ours)."""
        order = {
            "port": self.port, "account": ACCOUNT, "secret": SECRET, "kind": kind, "run": run, "messages": messages,
            "conversations": conversations, "connections": min(connections, conversations),
        }  # fmt: skip
        with programs.ours("load", self.log.fileno()) as load:
            load.ask(order)
            before_s = self.cpu_s()
            told = load.ask({})
            self.rest()
            until_end = time.monotonic() - told["began"]
        return told | {"until_end": until_end, "cpu_s": since(before_s, self.cpu_s())}

    def used(self) -> int:
        """Bytes that the server's data and clients take."""
        return int(self.client.info("memory")["used_memory"])

    def commands(self) -> dict[str, int]:
        """Commands that the server ran since its start, those inside scripts included, by name."""
        stats: dict[str, dict[str, int]] = self.client.info("commandstats")
        return {name.removeprefix("cmdstat_"): int(row["calls"]) for name, row in stats.items()}


def _toml(shape: Shape, callback: str) -> str:
    people = json.dumps([person(number) for number in range(PEOPLE)])
    bounds = "" if shape.bounded else "max_queue_depth = 0x7fffffff\nmax_account_depth = 0x7fffffff\n"
    lanes = "" if shape.bounded else "[pipeline]\nlane_max = 1000000\n"
    return f"""[ingest]
port = {free_port()}
{bounds}
[metrics]
port = {free_port()}
[harness]
failure_notice = ""
[notices]
queued = ""
{lanes}
[[accounts]]
id = "{ACCOUNT}"
channel = "mock"
direct_per_minute = 0
join_s = 0
ack = "none"
members = {people}
credentials = {{ callback_url = "{callback}" }}
[[accounts]]
id = "{SIGNED}"
channel = "slack"
self_id = "U0BENCHBOT"
credentials = {{ signing_secret = "{SECRET}" }}
"""
