"""The core on a real server for unit tests: a stepped clock, the real scripts and stages, a harness told what to do."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ingest.publisher import Publisher
from shared.channels.port import Part, PlatformApi
from shared.harness.port import Answer, HistoryPage, Question, Turn, TurnEvent
from shared.message import Message
from shared.outcome import STAGES, Stage
from shared.process import Process, build
from shared.sessions import Sessions
from shared.settings import Settings, from_mapping
from workers.apply import Seen
from workers.context import Context
from workers.moves import lanes, turn
from workers.runner import Plans, Runner
from workers.stages import PLANS

T = TypeVar("T")
NOW_MS = 1_788_280_000_000
PREFIX = "t:"


class StepClock:
    """Time passes only by `step`, by sleeping, and by waiting in vain: what hangs for `patience_s` of real time has
    used up its time limit."""

    def __init__(self, now_ms: int = NOW_MS) -> None:
        self._now_ms = now_ms
        self.patience_s = 30.0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return self._now_ms / 1000

    def step(self, seconds: float) -> None:
        self._now_ms += round(seconds * 1000)

    async def sleep(self, seconds: float) -> None:
        self.step(seconds)
        await asyncio.sleep(0)

    async def wait_for(self, work: Awaitable[T], seconds: float) -> T:
        try:
            return await asyncio.wait_for(work, self.patience_s)
        except TimeoutError:
            self.step(seconds)
            raise


class Told:
    """The harness port: does what stands first in `script` (an error is raised), then answers the current text."""

    def __init__(self, *script: Exception | Answer | Callable[[], None], idempotent: bool = False) -> None:
        self.script: list[Exception | Answer | Callable[[], None]] = list(script)
        self.turns: list[Turn] = []
        self.cancelled: list[str] = []
        self.pages: list[HistoryPage] = []
        self.reads: list[tuple[str, int, int]] = []
        self.idempotent = idempotent

    async def ask(self, turn: Turn, on_event: Callable[[TurnEvent], None]) -> Answer:
        self.turns.append(turn)
        step = self.script.pop(0) if self.script else None
        if isinstance(step, Exception):
            raise step
        if isinstance(step, Answer):
            return step
        if step is not None:
            step()
        return Answer((Part("text", turn.text),))

    async def resume(self, turn: Turn, url: str, on_event: Callable[[TurnEvent], None]) -> Answer:
        return await self.ask(turn, on_event)

    async def cancel(self, turn: Turn, url: str | None) -> None:
        self.cancelled.append(turn.id)

    async def answer(self, turn: Turn, question: Question, text: str, on_event: Callable[[TurnEvent], None]) -> Answer:
        return await self.ask(turn, on_event)

    async def history(self, session: str, before_ms: int, limit: int) -> HistoryPage:
        self.reads.append((session, before_ms, limit))
        return self.pages.pop(0) if self.pages else HistoryPage((), more=False)


class Points:
    """A probe that remembers, and does something at one point."""

    def __init__(self) -> None:
        self.reached: list[str] = []
        self.at: dict[str, Callable[[], None]] = {}

    def point(self, name: str, id_: str = "") -> None:
        self.reached.append(name)
        if name in self.at:
            self.at[name]()


def settings_of(over: Mapping[str, Any] | None = None, **account: Any) -> Settings:
    """One account `demo` on the mock channel, an echo, no notices; `over` has more tables, `account` more keys."""
    demo = {"id": "demo", "channel": "mock", "ack": "none", "join_s": 0, "language": "zh", "owners": ["anna"]}
    base = {"harness": {"failure_notice": ""}, "redis": {"prefix": PREFIX}, "accounts": [{**demo, **account}]}
    return from_mapping({**base, **(over or {})})


def message(number: int | str = 1, **changes: Any) -> Message:
    """The owner's private message on account `demo`."""
    fields: dict[str, Any] = {
        "channel": "mock",
        "account": "demo",
        "message_id": str(number),
        "chat_id": "anna",
        "chat_type": "private",
        "sender_id": "anna",
        "text": "何时涨潮？",
        **changes,
    }
    fields.setdefault("keys", (f"{fields['chat_id']}:{fields['message_id']}",))
    return Message.model_validate(fields)


class NoNetwork:
    """A platform's network that nothing may use."""

    async def request(self, *_: object, **__: object) -> Any:
        raise AssertionError("nothing here may use the network")


@dataclass
class Core:
    """The pipeline of one process."""

    process: Process
    clock: StepClock
    harness: Told
    plans: Plans = PLANS
    api: PlatformApi = field(default_factory=NoNetwork)
    probe: Points = field(default_factory=Points)
    ctx: Context = field(init=False)

    def __post_init__(self) -> None:
        process = self.process
        self.ctx = Context(
            client=process.client,
            keys=process.keys,
            scripts=process.scripts,
            clock=self.clock,
            config=process.config,
            switches=process.switches,
            access=process.access,
            sessions=Sessions(process.client, self.clock, process.keys.prefix),
            beats=process.beats,
            server=process.server,
            probe=self.probe,
            rng=random.Random(1),
            api=lambda _: self.api,
            harness=lambda _: self.harness,
            log_key=process.log_key,
            name="unit",
        )

    @property
    def runner(self) -> Runner:
        return Runner(self.ctx, self.plans)

    def publish(self, *messages: Message) -> list[str]:
        """Through the real publisher; the envelopes' ids."""
        publisher = Publisher(
            self.ctx.client, self.ctx.scripts, lambda: self.ctx.settings, self.clock.now_ms, self.process.partitions
        )
        return list(asyncio.run(publisher.accept(messages, self.clock.now_ms())).ids)

    def run(self, stage: Stage, name: str) -> None:
        """One wake-up."""
        asyncio.run(self.runner.run(stage, name))

    def wake(self, *stages: Stage) -> int:
        """Take every wake-up of these stages (default: all) off Celery's lists and run it, until there is none."""
        total = 0
        while taken := self._taken(stages or STAGES):
            for stage, name in taken:
                self.run(stage, name)
            total += len(taken)
            assert total < 5_000, "wake-ups without end"
        return total

    def _taken(self, stages: tuple[Stage, ...]) -> list[tuple[Stage, str]]:
        raws: dict[Stage, str | None] = {s: self.ctx.client.rpop(self.ctx.keys.wake(s)) for s in stages}
        return [(stage, wake_name(raw)) for stage, raw in raws.items() if raw]

    def start(self, harness: str = "default", token: str = "dead") -> list[Any]:  # noqa: S107
        """What a worker is told that starts a turn; nobody beats for it."""
        settings, now_ms = self.ctx.settings, self.ctx.now_ms()
        asked = {"harness": harness, "turn": turn(settings, token, "fresh"), **lanes(settings)}
        return self.ctx.scripts.call("start", now_ms, **asked)

    def record(self, id_: str) -> dict[str, str]:
        return self.ctx.client.hgetall(self.ctx.keys.record(id_))

    def seen(self, id_: str) -> Seen:
        return Seen(id_, self.record(id_))

    def end(self, id_: str) -> tuple[str, str]:
        """Disposition and reason, or the place and ''."""
        record = self.record(id_)
        return record.get("disposition", record["place"]), record.get("reason", "")

    def rows(self, id_: str) -> list[dict[str, Any]]:
        """The decision record."""
        return [json.loads(line) for line in self.record(id_).get("log", "").splitlines()]

    def sent(self) -> list[str]:
        """The texts that some record still has to send, or was to send when it died, oldest record first."""
        keys = sorted(self.ctx.client.scan_iter(self.ctx.keys.record("*")))
        stored = [self.ctx.client.hget(key, "parts") for key in keys]
        return [part.get("text", "") for parts in stored if parts for part in json.loads(parts)]


def core_of(client: Any, settings: Settings | None = None, harness: Told | None = None) -> Core:
    """A process on `client`'s server."""
    clock = StepClock()
    return Core(build(settings or settings_of(), clock=clock, client=client), clock, harness or Told())


def wake_name(raw: str) -> str:
    """The name that a wake-up carries."""
    return str(json.loads(json.loads(raw)["body"])[0][0])
