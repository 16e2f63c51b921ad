"""What stands outside the pipeline: the platforms and the assistant, moody by the seed, with honest books."""

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from shared.channels.port import Call, Json, Part, PlatformResponse
from shared.errors import EffectUnknown, Transient
from shared.harness.port import (
    Answer,
    HarnessRefused,
    HistoryPage,
    Question,
    Turn,
    TurnAccepted,
    TurnEvent,
)
from workers.ops.scenario.clock import ScenarioClock
from workers.ops.scenario.wires import success_of, wire_of

TIMEOUT_S = 20.0
"""`timeout_s` of the simulated harness: its longest delay is longer, a usual one far shorter."""


class Judge(Protocol):
    """Who is told of every effect outside, at the moment at which it happens."""

    def asked(self, turn: Turn, took: bool) -> None: ...
    def sending(self, account: str, channel: str, text: str, took: bool) -> None: ...
    def told_to_wait(self, seconds: float) -> None: ...
    def looking(self, account: str, wanted: str) -> None: ...


@dataclass
class Moods:
    """How often the outside misbehaves, as shares of its calls; all 0 once the faults stop."""

    harness: float = 0.0
    platform: float = 0.0
    outage: bool = False

    def calm(self) -> None:
        self.harness = self.platform = 0.0
        self.outage = False


@dataclass
class SimHarness:
    """An assistant that echoes in one or two parts; what it may do instead is in `ask`."""

    clock: ScenarioClock
    rng: random.Random
    moods: Moods
    judge: Judge
    idempotent: bool
    answers: dict[str, int] = field(default_factory=dict[str, int])

    async def ask(self, turn: Turn, on_event: Callable[[TurnEvent], None]) -> Answer:
        bad = self.rng.random() < self.moods.harness
        if self.moods.outage or (bad and self.rng.random() < 0.4):
            self.judge.asked(turn, took=False)
            await self._think()
            raise Transient("busy (simulated)")
        self.judge.asked(turn, took=True)
        if self.rng.random() < 0.25:
            on_event(TurnAccepted(f"https://harness.invalid/{turn.id}"))
        await self._think()
        if bad:
            match self.rng.randrange(3):
                case 0:
                    raise EffectUnknown("broken after the request was written (simulated)")
                case 1:
                    raise HarnessRefused("no (simulated)")
                case _:
                    await self.clock.sleep(TIMEOUT_S * 2)
        return self._answer(turn)

    async def resume(self, turn: Turn, url: str, on_event: Callable[[TurnEvent], None]) -> Answer:
        del url, on_event
        await self._think()
        return self._answer(turn)

    async def cancel(self, turn: Turn, url: str | None) -> None:
        del turn, url

    async def answer(self, turn: Turn, question: Question, text: str, on_event: Callable[[TurnEvent], None]) -> Answer:
        del question, text
        return await self.ask(turn, on_event)

    async def history(self, session: str, before_ms: int, limit: int) -> HistoryPage:
        del session, before_ms, limit
        return HistoryPage((), more=False)

    async def _think(self) -> None:
        await self.clock.sleep(self.rng.choice((0.0, 0.0, 0.2, 1.0, 3.0)))

    def _answer(self, turn: Turn) -> Answer:
        parts = self.answers.setdefault(turn.id, self.rng.choice((1, 1, 2)))
        return Answer(tuple(Part("text", f"{turn.id}/{n}") for n in range(parts)))


class SimApi:
    """The network of one account. `first`: moods that come before those of the seed."""

    def __init__(
        self, account: str, channel: str, clock: ScenarioClock, rng: random.Random, moods: Moods, judge: Judge
    ) -> None:
        self._account = account
        self._channel = channel
        self._clock = clock
        self._rng = rng
        self._moods = moods
        self._judge = judge
        self._taken: Counter[str] = Counter()
        self.first: list[str] = []

    async def request(
        self,
        call: Call,
        method: str,
        url: str,
        *,
        ref: str = "",
        headers: Mapping[str, str] | None = None,
        json: Json = None,
        params: Mapping[str, str] | None = None,
        data: Mapping[str, str] | None = None,
        timeout_s: float = 10.0,
        max_bytes: int = 4_194_304,
    ) -> PlatformResponse:
        """One send, or one lookup; nothing else is ever asked of the simulated platforms."""
        del method, headers, data, max_bytes
        if call == "get_message":
            return await self._looked_up(ref, params or {}, timeout_s)
        assert call == "send", call
        body: Any = json
        text = str(body["text"])
        mood = self._rng.choice(MOODS) if self._rng.random() < self._moods.platform else "ok"
        mood = self.first.pop(0) if self.first else mood
        took = mood in ("ok", "taken and broken", "taken and silent", "taken and wordless")
        self._judge.sending(self._account, self._channel, text, took)
        await self._clock.sleep(self._rng.choice((0.0, 0.0, 0.1, 2.0)))
        match mood:
            case "refused connection":
                raise Transient("no connection (simulated)")
            case "taken and broken" | "broken":
                raise EffectUnknown("broken after the request was written (simulated)")
            case "taken and silent" | "silent":
                await self._clock.sleep(timeout_s)
                raise EffectUnknown("no answer in time (simulated)")
            case "taken and wordless":
                return PlatformResponse(502, {}, b"<simulated>")
            case "too many":
                wait_s = self._rng.choice(WAITS_S)
                self._judge.told_to_wait(wait_s)
                return self._says(429, wire_of(self._channel).refusal(429, wait_s), {"retry-after": str(wait_s)})
            case "no":
                return self._says(400, wire_of(self._channel).refusal(400, None))
            case _:
                self._taken[text] += 1
                number = sum(self._taken.values())
                return self._says(200, success_of(self._channel, url, body, number, self._clock.now_ms()))

    async def _looked_up(self, wanted: str, params: Mapping[str, str], timeout_s: float) -> PlatformResponse:
        self._judge.looking(self._account, wanted)
        bad = self._rng.random() < self._moods.platform
        await self._clock.sleep(self._rng.choice((0.0, 0.1, 2.0)))
        match self._rng.choice(LOOKS) if bad else "found":
            case "found":
                shown = {"ts": params["latest"], "user": "7", "text": "what was said"}
                return self._says(200, {"ok": True, "messages": [shown]})
            case "another":
                return self._says(200, {"ok": True, "messages": [{"ts": "0.5", "user": "7", "text": "something else"}]})
            case "forbidden":
                return self._says(200, {"ok": False, "error": "missing_scope"})
            case "failing":
                return self._says(503, {"ok": False})
            case _:
                await self._clock.sleep(timeout_s)
                raise EffectUnknown("no answer in time (simulated)")

    def _says(self, status: int, body: object, headers: Mapping[str, str] | None = None) -> PlatformResponse:
        return PlatformResponse(
            status, {"content-type": "application/json", **(headers or {})}, json.dumps(body).encode()
        )


LOOKS = ("another", "forbidden", "failing", "silent")
"""What a platform may answer to a lookup instead of the message."""
WAITS_S = (1, 3, 20)
"""What a platform asks to wait when it is asked too often."""
MOODS = (
    "refused connection", "refused connection", "too many", "too many", "no", "broken", "silent",
    "taken and broken", "taken and silent", "taken and wordless",
)  # fmt: skip
"""What a platform may do instead of taking a message and saying so."""
