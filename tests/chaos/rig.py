"""Hosts of real processes around one server, the load that runs through them, and what a scene shows in the end."""

import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from redis import exceptions as redis_errors

from shared.redis.embedded import Embedded, Kind
from tests.chaos import host_clock
from tests.chaos.harness import Chat, Harness, between
from tests.chaos.load import ALLOWED, Incident, Report, conserved, every_message, examine, tables
from tests.chaos.stream import Stream, events
from tests.integration.world import KINDS, Child, World, eventually, world
from tests.platforms.emulator import running
from workers.deadletters.store import RAW
from workers.pipeline import STAGES

PEOPLE = 40
UNDER_WAY = 150
SENDS_S = 0.002
SHORT = between(5, 20, 1)
"""Turns of 5 to 20 ms, where nothing else is wanted."""
WORKERS = tuple(spec.name for spec in STAGES)
HOST = (*WORKERS, "keeper")
"""What a host runs: one process of each."""


def ended(child: Child, within_s: float = 40) -> None:
    """Wait for the end of a process after TERM."""
    eventually(lambda: not child.alive(), within_s, f"end of {child.stage} after TERM, see {child.log}")


@dataclass(frozen=True)
class Host:
    """A machine: its way to the server (a configuration) and its clock, which all its processes share."""

    name: str
    config: Path
    clock: Path
    runs: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """A scene in the table, counted in messages. The ends are those of what is not another's duplicate."""

    scene: str
    accepted: int
    answered: int
    dead: dict[str, int]
    doubled: int
    lost: int
    reordered: int
    faults: str
    seconds: float


@dataclass
class Rig:
    """A world and its hosts. `figures`: the rows of what was judged."""

    world: World
    data: Path
    harness: Harness
    chat: Chat
    server: Embedded
    kinds: list[Kind]
    hosts: list[Host]
    host_of: dict[int, Host] = field(default_factory=dict[int, Host])
    judged: set[str] = field(default_factory=set[str])
    numbers: Any = field(default_factory=lambda: count(1))

    def start(self, host: Host, *stages: str, **more: Any) -> list[Child]:
        """Start processes on a host."""
        made = self.world.start(*stages, config=str(host.config), clock=str(host.clock), **more)
        self.host_of |= {child.pid: host for child in made}
        return made

    def complete(self) -> None:
        """Start what the hosts should run and do not."""
        have = Counter((self.host_of[child.pid].name, child.stage) for child in self.world.living())
        for host in self.hosts:
            missing = [stage for stage in host.runs if not have[host.name, stage]]
            if missing:
                self.start(host, *missing)

    def restart(self, child: Child) -> None:
        """A process in the place of one that has ended."""
        self.start(self.host_of[child.pid], child.stage)

    def depth(self) -> int | None:
        """How many messages are under way; None while the server does not say."""
        try:
            return self.world.depth()
        except (redis_errors.RedisError, OSError):
            return None

    def taken_over(self) -> int:
        """How many takeovers the keepers have told of so far."""
        logs = (child.log.read_text() for child in self.world.children if child.stage == "keeper")
        return sum(text.count('"event": "taken_over"') for text in logs)

    def restart_server(self) -> None:
        """The server that has ended comes back on its folder and its port."""
        url = self.server.url
        self.server.stop()  # only its host process is left
        self.server = Embedded.start(self.data, durable=True, kinds=self.kinds)
        assert self.server.url == url

    @contextmanager
    def scene(self, name: str, delay: Any = SHORT, under_way: int = UNDER_WAY) -> "Generator[Scene]":
        """Load to the end of the block or to `Scene.rest`. Before it all that should run runs, nothing is under way."""
        self.harness.delay = delay
        self.complete()
        self.world.rest(60)
        self.judged |= set(every_message(self.world))
        self.harness.forget()
        self.chat.forget()
        source = events(f"e{next(self.numbers)}", PEOPLE, random.Random(1))
        stream = Stream(self.world.hook("demo"), source, self.depth, under_way)
        scene = Scene(self, name, stream, time.monotonic())
        stream.start()
        try:
            yield scene
        finally:
            if stream.is_alive():
                stream.finish(60)


@dataclass
class Scene:
    """One kind of fault under load."""

    rig: Rig
    name: str
    stream: Stream
    begun: float
    faults: Counter[str] = field(default_factory=Counter[str])

    def __post_init__(self) -> None:
        self.taken_over_before = self.rig.taken_over()

    def after(self, answers: int, within_s: float = 90) -> None:
        """Wait until so many more replies were sent: faults are spread over the load, however fast it goes."""
        wanted = len(self.rig.chat.sends) + answers
        eventually(lambda: len(self.rig.chat.sends) >= wanted, within_s, f"{answers} more replies")

    def rest(self, within_s: float = 60) -> None:
        """No more load; everything comes to its end."""
        self.stream.finish(within_s)
        self.rig.world.rest(within_s)

    def report(self, *, frozen: bool = False) -> "tuple[Report, Row]":
        """What became of everything since the scene began, whether anybody was told that it was taken or not."""
        rig = self.rig
        by_event = {event: ids for event, ids in every_message(rig.world).items() if event not in rig.judged}
        ids = [id_ for each in by_event.values() for id_ in each]
        rig.judged |= set(by_event)
        report = examine(rig.world, ids, rig.harness, rig.chat, frozen=frozen)
        spare = report.ends.pop("duplicate", 0)
        report.lost += [
            Incident(event, "acknowledged, and gone", at)
            for event, at in self.stream.acknowledged.items()
            if event not in by_event
        ]
        for event, each in by_event.items():
            ends = rig.world.dispositions(each)
            if ends.total() - ends["duplicate"] != 1:
                report.doubled.append(Incident(event, f"has these ends: {ends}"))
        faults = [f"{n} {what}" for what, n in self.faults.items()]
        faults += [f"({n} refused: {why})" for why, n in self.stream.refused.items()]
        faults += [f"({spare} taken twice, ended as duplicates)"] if spare else []
        dead = {end.removeprefix("dead:"): n for end, n in sorted(report.ends.items()) if end != "answered"}
        return report, Row(
            scene=self.name,
            accepted=len(self.stream.acknowledged),
            answered=report.ends["answered"],
            dead=dead,
            doubled=len({each.id for each in report.doubled}),
            lost=len({each.id for each in report.lost}),
            reordered=len({each.id for each in report.reordered}),
            faults=", ".join(faults),
            seconds=round(time.monotonic() - self.begun, 1),
        )

    def taken_over(self) -> int:
        """How many messages were taken over from a holder that had fallen silent, as if it had died."""
        return self.rig.taken_over() - self.taken_over_before

    def forgiven(self, report: Report, since: float) -> None:
        """Strike from the report what a server cannot help that has forgotten everything from `since` (monotonic) on:
        what was accepted, asked or sent for the first time after that. The rest stays."""
        for incidents in (report.lost, report.doubled):
            incidents[:] = [each for each in incidents if each.at_s < since]

    def judge(
        self, figures: "Callable[[Row], None]", allowed: Collection[str] = ALLOWED, *, frozen: bool = False,
        within_s: float = 60,
    ) -> None:  # fmt: skip
        """The load ends, everything comes to rest, and nothing is lost, doubled, reordered or left."""
        self.rest(within_s)
        report, row = self.report(frozen=frozen)
        figures(row)
        report.hold(allowed)
        assert report.ends["answered"] > 0
        conserved(self.rig.world)
        keys = self.rig.world.process.keys
        assert not self.rig.world.process.client.zcard(keys.letters(RAW)), "somebody pushed what is no wake-up"


@contextmanager
def rig(folder: Path, hosts: Iterable[str] = ("a", "b"), kinds: list[Kind] = KINDS, **pipeline: Any) -> Generator[Rig]:
    """A server with an append-only file, synced every second, and hosts that run every stage and a keeper each. Ingest
    runs on a host of its own, `edge`, so that the others can be cut off."""
    data = folder / "data"
    with (
        running(Harness(SHORT)) as harness,
        running(Chat(SENDS_S)) as chat,
        Embedded.start(data, durable=True, kinds=kinds) as server,
    ):
        config = tables(harness, chat, PEOPLE)
        # An outage that lasts longer than `order_wait_s` lets what is ready overtake what is not: here none does.
        config["pipeline"] |= {"order_wait_s": 120, **pipeline}
        with world(folder, server, **config) as made:
            found: list[Host] = []
            for name in (*hosts, "edge"):
                own, clock = folder / f"{name}.json", folder / f"{name}.clock"
                own.write_text(made.config.read_text())
                host_clock.jump(clock, 0)
                found.append(Host(name, own, clock, ("ingest",) if name == "edge" else HOST))
            it = Rig(made, data, harness, chat, server, kinds, found)
            try:
                yield it
            finally:
                for child in made.living():
                    child.kill()
                it.server.stop()
