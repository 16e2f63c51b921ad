"""One simulated world: the real publisher, stages, scripts and keeper in several processes, everything from a seed."""

import asyncio
import hashlib
import random
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, Final

import structlog
from redis import exceptions as redis_errors

from ingest.port import Overloaded, Unavailable
from ingest.publisher import Publisher
from shared.access import Access
from shared.beats import Beats, Hold, ServerWatch
from shared.harness.port import Turn
from shared.message import Message
from shared.outcome import Stage
from shared.process import Process, build
from shared.redis.client import Redis
from shared.sessions import Sessions
from shared.switches import SwitchBoard
from tests.simulation.invariants import Books, Broken, Look, at_rest, standing
from tests.simulation.link import Link, SimScripts
from tests.simulation.outside import Moods, SimApi, SimHarness
from tests.simulation.people import PREFIX, settings_of
from tests.simulation.strands import Crew, Life, Strand, WorkerDied
from workers.context import Context
from workers.keeper.keeper import Keeper
from workers.ops.scenario.clock import ScenarioClock
from workers.ops.scenario.world import wake_name
from workers.runner import Plans, Runner
from workers.stages import PLANS

START_MS: Final = 1_788_280_000_000
STAGES: Final[tuple[Stage, ...]] = ("admission", "engagement", "quotes", "dispatch", "delivery")
"""The stages that have processes; without a judge none is needed for that one."""
SOLO: Final = frozenset({"admission", "engagement"})
AT_ONCE: Final = 4
"""Strands of one process of the other stages."""
LENGTHS: Final = "local n = {} for i, k in ipairs(KEYS) do n[i] = redis.call('LLEN', k) end return n"
EVENTS: Final = 40
"""Events that a failure shows."""


class SteadyServer(ServerWatch):
    """A server that never restarts: nothing here loses its last second."""

    def _identity(self) -> str:
        return "one"


class SimContext(Context):
    """Tokens from the seed."""

    def token(self) -> str:
        return f"{self.rng.getrandbits(64):016x}"


class Actor(Life):
    """One process: a worker of `stage`, or a keeper."""

    def __init__(self, name: str, stage: str, ctx: Context, plans: Plans) -> None:
        super().__init__(name)
        self.stage = stage
        self.ctx = ctx
        self.runner = Runner(ctx, plans)
        self.keeper = Keeper(ctx, scan=False) if stage == "keeper" else None
        self.hold: Hold | None = None
        self.term = ExitStack()
        self.beaten_ms = ctx.now_ms()


class World:
    """Everything of one seed. `plans` and `planted` (text for text, by script) are where a fault is planted."""

    def __init__(
        self,
        seed: int,
        client: Redis,
        url: str,
        *,
        plans: Plans = PLANS,
        planted: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        client.flushdb()
        self.seed = seed
        self.rng = random.Random(seed)
        self.client = client
        self.plans = plans
        self.clock = ScenarioClock(START_MS)
        self.crew = Crew()
        self.events: deque[str] = deque(maxlen=EVENTS)
        self._digest = hashlib.sha256()
        self.broken: Broken | None = None
        self.idempotent = self.rng.random() < 0.3
        self.settings = settings_of(url, idempotent=self.idempotent)
        self.process: Process = build(self.settings, clock=self.clock, client=client)
        self.keys = self.process.keys
        self.link = Link(client, self.crew, self.rng, self.note)
        self.scripts = SimScripts(self.link, PREFIX, self.rng, self._told, planted or {})
        self.books = Books(client, self.keys, self.idempotent)
        self.moods = Moods()
        self.harness = SimHarness(self.clock, self.rng, self.moods, self, self.idempotent)
        self.apis = {
            a.id: SimApi(a.id, a.channel, self.clock, self.rng, self.moods, self) for a in self.settings.accounts
        }
        self.die_at: str | None = None
        self.accepted: set[str] = set()
        self.actors: list[Actor] = []
        self._serial = 0
        self._ingest = asyncio.new_event_loop()
        self.publisher = Publisher(
            client, self.scripts, lambda: self.settings, self.clock.now_ms, self.process.partitions, self._fresh_id
        )
        for stage in (*STAGES, "keeper"):
            self.actors += [self.born(f"{stage}-{letter}", stage) for letter in "ab"]

    def note(self, text: str) -> None:
        """Add one line to what a failure shows."""
        who = self.crew.current
        line = f"{self.clock.now_ms() - START_MS:>8} ms  {who.name if who else '·'}: {text}"
        self.events.append(line)
        self._digest.update(line.encode())

    def digest(self) -> str:
        """Of every event from the start: equal when two runs were the same."""
        return self._digest.hexdigest()

    # What is told by strands: kept for the driver, because a strand's own stage might swallow it.

    def asked(self, turn: Turn, took: bool) -> None:
        """The harness was asked."""
        self.note(f"asks the harness: {turn.id} took={took}")
        self._judged(lambda: self.books.ask(turn, took))

    def sending(self, account: str, channel: str, text: str, took: bool) -> None:
        """A platform was asked to send."""
        self.note(f"sends on {account} {text[:40]!r} took={took}")
        strand = self.crew.current
        assert strand is not None
        self._judged(lambda: self.books.send(strand, channel, took))

    def point(self, name: str, id_: str = "") -> None:
        """A fault point: anybody may go first, and the process may die."""
        strand = self.crew.current
        if strand is None:
            return
        if name == self.die_at:
            self.die_at = None
            self.note(f"dies at {name}")
            strand.life.alive = False
            raise WorkerDied(name)
        strand.pause()

    def _told(self, script: str, argument: dict[str, Any], answer: Any) -> None:
        text = {k: v for k, v in argument.items() if k in ("stage", "part", "id", "name", "holder", "op", "state")}
        if script == "move":
            text["moves"] = [(m["id"], m.get("to") or m.get("end")) for m in argument["moves"]]
        shown = [word for word in answer[:3] if isinstance(word, str | int)] if isinstance(answer, list) else answer
        if self.crew.current is not None or script == "accept":
            self.note(f"{script} {text} -> {shown}")
        if script == "start" and answer[0] == "ok" and answer[2] == "first":
            wait_ms = argument["order_wait_ms"]
            self._judged(lambda: self.books.started(answer[1], self.clock.now_ms(), wait_ms))
        if script == "takeover" and argument["name"] != "keeper":
            self.books.takeovers.update(answer[::2])

    def _judged(self, rule: Callable[[], None]) -> None:
        try:
            rule()
        except Broken as error:
            self.broken = self.broken or error

    # Processes.

    def born(self, name: str, stage: str) -> Actor:
        """A new process."""
        link = _Watched(self.link, self)
        server = SteadyServer(self.client, self.clock, 0.0)
        ctx = SimContext(
            client=link,
            keys=self.keys,
            scripts=self.scripts,
            clock=self.clock,
            config=self.process.config,
            switches=SwitchBoard(link, self.keys),
            access=Access(link, self.keys),
            sessions=Sessions(self.link, self.clock, PREFIX),  # pyright: ignore[reportArgumentType]
            beats=Beats(self.scripts, self.clock, server),
            server=server,
            probe=self,
            rng=self.rng,
            api=lambda account: self.apis[account.id],
            harness=lambda _: self.harness,
            log_key=self.process.log_key,
            name=name,
        )
        return Actor(name, stage, ctx, self.plans)

    def kill(self, actor: Actor) -> None:
        """The process dies and another takes its place."""
        self.note(f"{actor.name} is killed")
        self.crew.bury(actor)
        self.actors[self.actors.index(actor)] = self.born(actor.name, actor.stage)

    def resume(self, strand: Strand) -> None:
        """Let a strand run on, and see that everything still holds."""
        self.crew.resume(strand)
        if not strand.life.alive and strand.life in self.actors:
            self.kill(strand.life)  # pyright: ignore[reportArgumentType]
        if self.broken is not None:
            raise self.broken

    def look(self) -> Look:
        """Everything as it stands; raises Broken where it cannot stand so."""
        look = Look(self.client, PREFIX)
        standing(look)
        self.books.freeze(look)
        return look

    def busy(self, actor: Actor) -> int:
        """How many strands it has."""
        return sum(s.life is actor for s in self.crew.strands)

    def wake(self, stage: Stage, name: str) -> bool:
        """Give a wake-up to a process that has room; False when none has."""
        most = 1 if stage in SOLO else AT_ONCE
        free = [a for a in self.actors if a.stage == stage and self.busy(a) < most]
        if not free:
            return False
        actor = self.rng.choice(free)
        self.crew.start(actor, f"{actor.name} {name}", lambda: actor.runner.run(stage, name))
        return True

    def wakes(self) -> list[tuple[Stage, int]]:
        """The stages that have wake-ups waiting, and how many."""
        lengths: list[int] = self.client.eval(LENGTHS, len(STAGES), *(self.keys.wake(s) for s in STAGES))
        return [(stage, length) for stage, length in zip(STAGES, lengths, strict=True) if length]

    def take(self, stage: Stage, position: int) -> str:
        """Take one wake-up off its list."""
        key = self.keys.wake(stage)
        raw = self.client.lindex(key, position)
        self.client.lset(key, position, "taken")
        self.client.lrem(key, 1, "taken")
        return wake_name(raw)

    def settle(self) -> None:
        """Run everything that needs no time to pass, wake-ups included. Raises Broken."""
        while True:
            if runnable := self.crew.runnable(self.clock.now_ms()):
                self.resume(self.rng.choice(runnable))
            elif waiting := self.wakes():
                stage, _ = self.rng.choice(waiting)
                self.wake(stage, self.take(stage, -1))
            else:
                return

    def tick(self, actor: Actor) -> None:
        """The keeper looks."""
        keeper = actor.keeper
        assert keeper is not None

        async def look() -> None:
            try:
                keeper.tick()
            except (redis_errors.RedisError, OSError):
                return
            if keeper.elected and (actor.hold is None or actor.hold.lost):
                actor.term.pop_all().close()
                name, token = keeper.lease()
                lease_s = self.settings.pipeline.lease_s
                actor.hold = actor.term.enter_context(actor.ctx.beats.holding(name, token, lease_s, float("inf")))

        if not self.busy(actor):
            self.crew.start(actor, f"{actor.name} tick", look)

    def publish(self, messages: list[Message]) -> bool:
        """One event or several at once; False when the platform must send them again."""
        try:
            self.accepted |= set(
                self._ingest.run_until_complete(self.publisher.accept(messages, self.clock.now_ms())).ids
            )
        except (Unavailable, Overloaded):
            return False
        return True

    def advance(self, until_ms: int) -> None:
        """Time passes; who is not frozen beats every second."""
        while (now := self.clock.now_ms()) < until_ms:
            self.clock.set(min(until_ms, now + 1000))
            for actor in self.actors:
                due = self.clock.now_ms() - actor.beaten_ms >= 1000
                if due and actor.frozen_until_ms <= self.clock.now_ms():
                    actor.beaten_ms = self.clock.now_ms()
                    if actor.ctx.beats.held():
                        actor.ctx.beats.tick()

    def next_ms(self) -> int:
        """When something happens next: a sleeper, a due id, a timer, or the keeper's next look at what is at work."""
        now = self.clock.now_ms()
        rows = [self.client.zrange(key, 0, 0, withscores=True) for key in (self.keys.due, self.keys.timers)]
        times = [int(row[0][1]) for row in rows if row] + ([at] if (at := self.clock.next_ms()) is not None else [])
        if [n for n in self.client.hkeys(self.keys.held) if n != "keeper"] or self.process_waits():
            times.append(now + 1000)
        return max(min(times, default=now + 3_600_000), now + 1)

    def process_waits(self) -> bool:
        """Whether anything stands where a worker or the keeper must find it."""
        sets = Look(self.client, PREFIX).sets
        return any(name.split(":")[0] in STAGES or name == "parked:pause" for name, ids in sets.items() if ids)

    def rest(self) -> None:
        """Raises Broken unless everything has ended well."""
        at_rest(self.look(), self.books, self.client.hgetall(self.keys.held), self.accepted, self.harness.answers)

    def close(self) -> None:
        """End every strand."""
        for actor in self.actors:
            self.crew.bury(actor)
        self._ingest.close()

    def _fresh_id(self, now_ms: int) -> str:
        self._serial += 1
        return f"M{self._serial:03d}{now_ms:022d}"


class _Watched:
    """The link of a process, whose looks at the switches are remembered."""

    def __init__(self, link: Link, world: World) -> None:
        self._link = link
        self._world = world

    def hgetall(self, key: str) -> dict[str, str]:
        # A hash's order is the server's secret; nothing may hang on it here.
        raw: dict[str, str] = dict(sorted(self._link.hgetall(key).items()))
        strand = self._world.crew.current
        if key == self._world.keys.switches and strand is not None:
            self._world.books.looked(strand, raw)
        return raw

    def __getattr__(self, name: str) -> Any:
        return getattr(self._link, name)


class Listening:
    """Takes every log line while it stands; a stage that fails over anything but the server is broken."""

    def __init__(self, world: World) -> None:
        self._world = world

    def __enter__(self) -> None:
        self._before = structlog.get_config()
        structlog.configure(processors=[self._heard], cache_logger_on_first_use=False)

    def __exit__(self, *_: object) -> None:
        structlog.configure(**self._before)

    def _heard(self, _logger: Any, method: str, event: Any) -> Any:
        if method == "error" and event.get("error") not in ("ConnectionError", "TimeoutError"):
            self._world.broken = self._world.broken or Broken(f"nothing fails by itself: {event}")
        raise structlog.DropEvent
