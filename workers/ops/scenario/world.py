"""A scenario's world: the real stages, scripts, publisher and keeper on a real server; only time, platforms and harness
are the document's."""

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from ingest.publisher import Publisher
from shared.message import Message
from shared.outcome import STAGES, Stage
from shared.process import Process, build
from shared.redis.client import Redis
from shared.sessions import Sessions
from shared.settings import Settings
from shared.switches import SwitchBoard
from workers.context import Context
from workers.keeper.keeper import Keeper
from workers.ops.scenario.clock import ScenarioClock, ScenarioLoop
from workers.ops.scenario.model import Scenario
from workers.ops.scenario.scripted import ScriptedHarness, ScriptedPlatforms
from workers.runner import Runner
from workers.stages import PLANS

LOOK_MS: Final = 1_000
"""While a claim is held or work stands unclaimed, the keeper and the beats look every second."""
ROUNDS: Final = 2_000
"""More rounds than this at one instant are a loop that never ends."""


class WorkerDied(BaseException):
    """The worker of this task is dead: nothing of it runs any more."""


class Died(Exception):
    """A scenario that never comes to rest."""


class ScenarioProbe:
    """Counts the effects and lets a worker die at one point, once."""

    def __init__(self) -> None:
        self.fault: str | None = None
        self.counts: Counter[str] = Counter()
        self.ended: list[str] = []
        self.firsts: list[str] = []
        self._known: set[str] = set()

    def point(self, name: str, id_: str = "") -> None:
        """A fault point is reached."""
        self.counts[name] += 1
        if name == "ended":
            self.ended.append(id_)
        if name == "turn.first" and id_ not in self._known:
            self._known.add(id_)
            self.firsts.append(id_)
        if name == self.fault:
            self.fault = None
            raise WorkerDied(name)


class World:
    """Everything that runs in one scenario."""

    def __init__(self, scenario: Scenario, settings: Settings, client: Redis) -> None:
        self.clock = ScenarioClock(scenario.now_ms)
        self.settings = settings
        self.client = client
        self.process: Process = build(settings, clock=self.clock, client=client)
        self.platforms = ScriptedPlatforms(scenario.platform, self.clock)
        self.harness = ScriptedHarness(scenario.harness, self.clock, settings.harness.idempotent)
        self.probe = ScenarioProbe()
        self.sessions = Sessions(client, self.clock, self.process.keys.prefix)
        self.ctx = self._context()
        self.runner = Runner(self.ctx, PLANS)
        self.keeper = Keeper(self.ctx, scan=False, eager=True)
        self.publisher = Publisher(
            client, self.process.scripts, lambda: self.ctx.settings, self.clock.now_ms, self.process.partitions
        )
        self.tasks: dict[asyncio.Task[None], Stage] = {}

    def _context(self) -> Context:
        process = self.process
        return Context(
            client=self.client,
            keys=process.keys,
            scripts=process.scripts,
            clock=self.clock,
            config=process.config,
            switches=process.switches,
            access=process.access,
            sessions=self.sessions,
            beats=process.beats,
            server=process.server,
            probe=self.probe,
            rng=_Longest(),
            api=lambda account: self.platforms.api(account.id, account.channel),
            harness=lambda _: self.harness,
            log_key=process.log_key,
            name="scenario",
        )

    async def publish(self, messages: Sequence[Message]) -> list[str]:
        """Through the real publisher; the envelopes' ids."""
        accepted = await self.publisher.accept(messages, self.clock.now_ms())
        return list(accepted.ids)

    def wake(self, stage: Stage, name: str) -> None:
        """A wake-up arrives."""
        task = asyncio.get_running_loop().create_task(self.runner.run(stage, name))
        self.tasks[task] = stage

    async def settle(self) -> None:
        """Run everything that is due at this instant, until nothing moves."""
        for _ in range(ROUNDS):
            woken = self._deliver()
            await self._rest()
            moved = self.keeper.tick()
            if not woken and not moved and not self._waiting_wakes():
                return
        raise Died(f"still moving after {ROUNDS} rounds at one instant")

    async def advance(self, until_ms: int) -> None:
        """Let time pass to `until_ms`, running what falls due on the way."""
        await self.settle()
        while (next_ms := self._next_ms()) <= until_ms:
            self.clock.set(next_ms)
            await self._rest()
            self.process.beats.tick()
            await self.settle()
        self.clock.set(until_ms)
        await self.settle()

    async def finish_calls(self) -> None:
        """Come to rest, and let platform calls under way get their answer or their time-out: a lookup or a send
        belongs to the step that made it, however long it takes; a turn of the harness runs on."""
        await self.settle()
        while (
            any(stage != "dispatch" for stage in self.tasks.values()) and (next_ms := self.clock.next_ms()) is not None
        ):
            self.clock.set(next_ms)
            await self.settle()

    def restart(self, what: str) -> None:
        """The processes of a stage, or all, are killed and start anew."""
        for task, stage in list(self.tasks.items()):
            if what in ("all", stage):
                task.cancel()
        if what == "all":
            self.ctx.switches = SwitchBoard(self.client, self.process.keys)
            self.probe.counts.clear()

    def close(self) -> None:
        """End what still runs."""
        for task in self.tasks:
            task.cancel()

    def _deliver(self) -> int:
        woken = 0
        for stage in STAGES:
            while (raw := self.client.rpop(self.process.keys.wake(stage))) is not None:
                self.wake(stage, wake_name(raw))
                woken += 1
        return woken

    def _waiting_wakes(self) -> bool:
        return any(self.client.llen(self.process.keys.wake(stage)) for stage in STAGES)

    async def _rest(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(0)
            if isinstance(loop, ScenarioLoop) and loop.idle():
                break
        for task in [t for t in self.tasks if t.done()]:
            self.tasks.pop(task)
            error = None if task.cancelled() else task.exception()
            if error is not None and not isinstance(error, WorkerDied):
                raise error

    def _next_ms(self) -> int:
        keys, now = self.process.keys, self.clock.now_ms()
        times = [at for at in (self.clock.next_ms(), self._first(keys.due), self._first(keys.timers)) if at is not None]
        if self._restless():
            times.append(now + LOOK_MS)
        return max(min(times, default=now + 10**15), now + 1)

    def _first(self, key: str) -> int | None:
        row = self.client.zrange(key, 0, 0, withscores=True)
        return int(row[0][1]) if row else None

    def _restless(self) -> bool:
        """True while a claim is held or something stands in a stage set: the keeper may have to act on it."""
        keys = self.process.keys
        held = [name for name in self.client.hkeys(keys.held) if name != "keeper"]
        if held or self.client.zcard(keys.at("parked:pause")):
            return True
        places = [keys.at(s) for s in ("judge", "quotes", "delivery")] + [keys.at("dispatch", "default")]
        places += [keys.at("dispatch", name) for name in self.settings.harnesses]
        parts = range(self.process.partitions)
        places += [keys.at(s, str(part)) for s in ("admission", "engagement") for part in parts]
        with self.client.pipeline(transaction=False) as pipe:
            for place in places:
                pipe.zcard(place)
            return any(pipe.execute())


class _Longest:
    """No chance in a scenario: retries wait their full backoff."""

    def random(self) -> float:
        return 1.0


def wake_name(raw: str) -> str:
    """The name that a wake-up carries."""
    body: Any = json.loads(json.loads(raw)["body"])
    return str(body[0][0])
