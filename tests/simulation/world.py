"""One simulated world: the real publisher, stages, scripts and keeper in several processes, everything from a seed."""

import asyncio
import hashlib
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from ingest.port import Overloaded, Unavailable
from ingest.publisher import Publisher
from shared.harness.port import Turn
from shared.message import Message
from shared.outcome import Stage
from shared.process import Process, build
from shared.redis.client import Redis
from tests.simulation.actors import Actor
from tests.simulation.clocks import SkewedClock
from tests.simulation.invariants import Books, Broken, Look, at_rest, demand, standing
from tests.simulation.link import Link, SimScripts
from tests.simulation.mix import drawn
from tests.simulation.outside import Moods, SimApi, SimHarness
from tests.simulation.people import PREFIX, settings_of
from tests.simulation.referee import Referee
from tests.simulation.rollback import Backup
from tests.simulation.script_events import Event, events_of
from tests.simulation.strands import Crew, Strand, WorkerDied
from workers.ops.scenario.clock import ScenarioClock
from workers.ops.scenario.world import wake_name
from workers.pipeline import STAGES
from workers.runner import Plans
from workers.stages import PLANS

START_MS: Final = 1_788_280_000_000
NAMES: Final[tuple[Stage, ...]] = tuple(spec.name for spec in STAGES)
LENGTHS: Final = "local n = {} for i, k in ipairs(KEYS) do n[i] = redis.call('LLEN', k) end return n"
TAKE: Final = """
local raw = redis.call('LINDEX', KEYS[1], ARGV[1])
redis.call('LSET', KEYS[1], ARGV[1], 'taken')
redis.call('LREM', KEYS[1], 1, 'taken')
return raw
"""
NEXT: Final = """
local P, out = ARGV[1], {}
for i, name in ipairs({'at:due', 'timers'}) do out[i] = redis.call('ZRANGE', P .. name, 0, 0, 'WITHSCORES')[2] or '' end
local kept = redis.call('HEXISTS', P .. 'held', 'keeper')
local busy = redis.call('HLEN', P .. 'held') > kept or redis.call('EXISTS', P .. 'at:parked:pause') == 1
for i = 2, #ARGV do
  busy = busy or #redis.call('KEYS', P .. 'at:' .. ARGV[i] .. '*') > 0
end
out[3] = busy and 1 or 0
return out
"""
"""The first due id's time, the first timer's, and whether anything is held or stands where it must be found."""
EVENTS: Final = 40
"""Events that a failure shows."""


class World:
    """Everything of one seed. `plans` and `planted` (text for text, by script) are where a fault is planted; `mixed`
    replaces parts of the seed's mixture."""

    def __init__(
        self,
        seed: int,
        client: Redis,
        url: str,
        *,
        plans: Plans = PLANS,
        planted: Mapping[str, Sequence[tuple[str, str]]] | None = None,
        mixed: Mapping[str, Any] | None = None,
    ) -> None:
        client.flushdb()
        self.seed = seed
        self.rng = random.Random(seed)
        self.mix = replace(drawn(self.rng), **(mixed or {}))
        self.client = client
        self.plans = plans
        self.clock = ScenarioClock(START_MS)
        self.crew = Crew()
        self.events: deque[str] = deque(maxlen=EVENTS)
        self._digest = hashlib.sha256()
        self.broken: Broken | None = None
        self.restarts = 0
        self.idempotent = self.rng.random() < 0.3
        self.settings = settings_of(url, idempotent=self.idempotent)
        self.process: Process = build(self.settings, clock=self.clock, client=client)
        self.keys = self.process.keys
        client.set(self.keys.run_id, "run 0|0")
        self.link = Link(client, self.crew, self.rng, self.note, self.clock)
        self.link.share, self.link.spoils = self.mix.calls, self.mix.spoils
        self.scripts = SimScripts(self.link, PREFIX, self.rng, self._told, self._seen_read_only, planted or {})
        self.books = Books(client, self.keys, self.idempotent, skew_ms=2 * self.mix.skew_ms)
        self.referee = Referee()
        self.backup = Backup(client, self.books, self.referee)
        self.moods = Moods(self.mix.harness, self.mix.platform)
        self.harness = SimHarness(self.clock, self.rng, self.moods, self, self.idempotent)
        self.apis = {
            a.id: SimApi(a.id, a.channel, self.clock, self.rng, self.moods, self) for a in self.settings.accounts
        }
        self.points: set[str] = set()
        self.die_at: str | None = None
        self._up_ms = 0
        self._wakes: list[tuple[Stage, int]] | None = None
        self.accepted: set[str] = set()
        self._serial = 0
        self._ingest = asyncio.new_event_loop()
        self.publishers = [self._publisher(), self._publisher()]
        self.actors = [Actor(self, f"{stage}-{letter}", stage) for stage in (*NAMES, "keeper") for letter in "ab"]
        self.operator = Actor(self, "operator", "operator")

    def _publisher(self) -> Publisher:
        most_ms = self.mix.skew_ms
        clock = SkewedClock(self.clock, self.rng.randint(-most_ms, most_ms), 0, most_ms)
        return Publisher(
            self.client, self.scripts, lambda: self.settings, clock.now_ms, self.process.partitions, self._fresh_id
        )

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
        self._judged(self._quiet)
        self._judged(lambda: self.books.ask(turn, took))

    def sending(self, account: str, channel: str, text: str, took: bool) -> None:
        """A platform was asked to send."""
        self.note(f"sends on {account} {text[:40]!r} took={took}")
        strand = self.crew.current
        assert strand is not None
        self._judged(lambda: self.books.send(strand, channel, took, self.clock.now_ms()))

    def told_to_wait(self, seconds: float) -> None:
        """A platform asked to be left alone for so long."""
        strand = self.crew.current
        assert strand is not None
        self.books.told_to_wait(strand, self.clock.now_ms() + int(seconds * 1000))

    def looking(self, account: str, wanted: str) -> None:
        """A platform was asked for a quoted message."""
        self.note(f"looks up {wanted} on {account}")
        strand = self.crew.current
        assert strand is not None
        self._judged(lambda: self.books.look_up(strand, self.mix.gentle))

    def point(self, name: str, id_: str = "") -> None:
        """A fault point: anybody may go first, and the process may die."""
        strand = self.crew.current
        if strand is None:
            return
        self.points.add(name)
        if name == self.die_at:
            self.die_at = None
            self.note(f"dies at {name}")
            strand.life.alive = False
            raise WorkerDied(name)
        strand.pause()

    def _seen_read_only(self) -> set[bool]:
        strand = self.crew.current
        return strand.life.read_only if strand is not None and isinstance(strand.life, Actor) else set()

    def _told(self, script: str, argument: dict[str, Any], answer: Any, read_only: set[bool]) -> None:
        self._wakes = None
        text = {k: v for k, v in argument.items() if k in ("stage", "part", "id", "name", "holder", "op", "state")}
        if script == "move":
            text["moves"] = [(m["id"], m.get("to") or m.get("end")) for m in argument["moves"]]
        shown = [word for word in answer[:3] if isinstance(word, str | int)] if isinstance(answer, list) else answer
        if self.crew.current is not None or script == "accept":
            self.note(f"{script} {text} -> {shown}")
        for event in events_of(script, argument, answer):
            self._happened(event, read_only)

    def _happened(self, event: Event, read_only: set[bool]) -> None:
        script, argument, answer, switches = event
        strand = self.crew.current
        self.backup.told(script, argument, answer)
        if script == "accept" and answer[0] == "ok":
            self.referee.accepted(argument["items"])
        elif script == "start" and answer[0] == "ok":
            if answer[2] == "first":
                wait_ms = argument["order_wait_ms"]
                self._judged(lambda: self.books.started(answer[1], argument["now"], wait_ms))
        elif script == "take" and answer[0] == "ok" and strand is not None:
            self.books.at_work[strand] = answer[1]
        elif script == "intent" and strand is not None:
            self.books.intend(strand, argument["id"], argument["part"], switches or {})
        elif script == "takeover" and argument["name"] != "keeper":
            self.books.takeovers.update(answer[::2])
        elif script == "reopen" and answer == "ok":
            self.books.reopened(argument["id"], argument["to"])
        self._judged(lambda: self.referee.told(script, argument, answer, self.clock.now_ms(), read_only))
        if script == "claim" and answer[0] == "ok" and switches is not None:
            read_only.clear()
            if strand is not None and isinstance(strand.life, Actor):
                strand.life.looked(switches)
        if script == "move" and answer != ["lost"] and any(m.get("stop") for m in argument["moves"]):
            self.referee.stopped({i for i, place in self._places().items() if place == "ended"})

    def _quiet(self) -> None:
        """After a restart no harness is asked for `lease_s`, but by who has not heard of it yet."""
        strand = self.crew.current
        knows = strand is not None and isinstance(strand.life, Actor) and strand.life.heard == self.restarts
        quiet_ms = self.settings.pipeline.lease_s * 1000 - self.books.skew_ms
        early = self.restarts and self.clock.now_ms() < self._up_ms + quiet_ms
        demand(not (knows and early), "after a restart nothing starts for the length of a lease")

    def _places(self) -> dict[str, str]:
        return {id_: rec.place for id_, rec in Look(self.client, PREFIX).recs.items()}

    def _judged(self, rule: Callable[[], None]) -> None:
        try:
            rule()
        except Broken as error:
            self.broken = self.broken or error

    # Processes.

    def kill(self, actor: Actor) -> None:
        """The process dies and another takes its place."""
        self.note(f"{actor.name} is killed")
        self.crew.bury(actor)
        self.actors[self.actors.index(actor)] = Actor(self, actor.name, actor.stage)

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
        self.books.compare(look)
        return look

    def busy(self, actor: Actor) -> int:
        """How many strands it has."""
        return sum(s.life is actor for s in self.crew.strands)

    def room(self, stage: Stage) -> list[Actor]:
        """The processes of a stage that could take another wake-up."""
        return [a for a in self.actors if a.stage == stage and self.busy(a) < a.most]

    def quiescent(self) -> None:
        """Raises Broken when nothing runs and no wake-up is under way, and yet something stands in a stage's set."""
        if self.wakes() or self.client.hexists(f"{self.keys.prefix}harness:default", "open_until"):
            return
        stands = {name: ids for name, ids in self.look().sets.items() if ids and name.split(":")[0] in NAMES}
        demand(not stands, "what may start has a wake-up", stands)

    def wake(self, stage: Stage, name: str) -> bool:
        """Give a wake-up to a process that has room; False when none has."""
        free = self.room(stage)
        if not free:
            return False
        actor = self.rng.choice(free)
        self.crew.start(actor, f"{actor.name} {name}", lambda: actor.runner.run(stage, name))
        return True

    def wakes(self) -> list[tuple[Stage, int]]:
        """The stages that have wake-ups waiting, and how many."""
        if self.link.down:
            return []
        if self._wakes is None:  # nothing but a script pushes one
            lengths: list[int] = self.client.eval(LENGTHS, len(NAMES), *(self.keys.wake(s) for s in NAMES))
            self._wakes = [(stage, length) for stage, length in zip(NAMES, lengths, strict=True) if length]
        return self._wakes

    def take(self, stage: Stage, position: int) -> str:
        """Take one wake-up off its list."""
        self._wakes = None
        return wake_name(self.client.eval(TAKE, 1, self.keys.wake(stage), position))

    def settle(self) -> None:
        """Run everything that needs no time to pass, wake-ups included. Raises Broken."""
        while True:
            if runnable := self.crew.runnable(self.clock.now_ms()):
                self.resume(self.rng.choice(runnable))
            elif waiting := [(stage, n) for stage, n in self.wakes() if self.room(stage)]:
                stage = cast("Stage", self.rng.choice(waiting)[0])
                self.wake(stage, self.take(stage, -1))
            else:
                return

    def tick(self, actor: Actor) -> None:
        """The keeper looks."""
        if not self.busy(actor):
            self.crew.start(actor, f"{actor.name} tick", actor.housekeep)

    def replay(self) -> None:
        """The operator looks at the dead letters."""
        if not self.busy(self.operator):
            self.crew.start(self.operator, "operator replay", lambda: self.operator.replay(self))

    def publish(self, messages: list[Message]) -> bool:
        """One event or several at once; False when the platform must send them again."""
        publisher = self.rng.choice(self.publishers)
        now_ms = publisher._now_ms()  # pyright: ignore[reportPrivateUsage]
        try:
            self.accepted |= set(self._ingest.run_until_complete(publisher.accept(messages, now_ms)).ids)
        except (Unavailable, Overloaded):
            return False
        return True

    # Time, and what comes with it.

    def advance(self, until_ms: int) -> None:
        """Time passes; who is not frozen beats every second, late calls come, a server that was down is back."""
        while (now := self.clock.now_ms()) < until_ms:
            if self.backup.until_ms is not None and min(until_ms, now + 1000) > self.backup.until_ms:
                self.lose()
            stops = [until_ms, now + 1000, self._up_ms if self.link.down else until_ms, self.link.late_ms() or until_ms]
            self.clock.set(max(min(stops), now))
            now = self.clock.now_ms()
            if self.link.down and now >= self._up_ms:
                self.link.down = False
                self.note("the server is back")
            self.link.arrive()
            for actor in self.actors:
                if self.restarts or actor.ctx.beats.held():
                    actor.beat(now)

    def lose(self) -> None:
        """The server is killed, and what comes back is as old as the last copy."""
        self.note("the server loses what it did last, and is down")
        self.restarts += 1
        self.link.cut()
        self._wakes = None
        self.backup.restore(self.accepted, PREFIX)
        self.link.down = True
        self._up_ms = self.clock.now_ms() + self.rng.choice((0, 300, 1_200, 4_000))

    def next_ms(self) -> int:
        """When something happens next: a sleeper, a due id, a timer, or the keeper's next look at what is at work."""
        now = self.clock.now_ms()
        due, timer, busy = self.client.eval(NEXT, 0, PREFIX, *NAMES)
        times = [int(float(at)) for at in (due, timer) if at] + [now + 1000] * busy
        times += [at for at in (self.clock.next_ms(), self.link.late_ms()) if at is not None]
        return max(min(times, default=now + 3_600_000), now + 1)

    def rest(self) -> None:
        """Raises Broken unless everything has ended well."""
        look = self.look()
        at_rest(look, self.books, self.client.hgetall(self.keys.held), self.accepted, self.harness.answers)
        self.referee.at_rest(look, self.books.excused)

    def close(self) -> None:
        """End every strand."""
        for actor in (*self.actors, self.operator):
            self.crew.bury(actor)
        self._ingest.close()

    def _fresh_id(self, now_ms: int) -> str:
        self._serial += 1
        return f"M{self._serial:03d}{now_ms:022d}"
