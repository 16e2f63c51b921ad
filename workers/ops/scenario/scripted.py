"""The world of a scenario: platforms and a harness that do what the document says, on the scenario's clock.

`ScriptedApi` is the network behind the real channels, `ScriptedHarness` an assistant; nothing in a stage knows it.
"""

import json as json_text
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from shared.channels.port import Call, Json, Part, PlatformResponse
from shared.clock import Clock
from shared.errors import EffectUnknown, Transient
from shared.harness.port import Answer, HarnessRefused, HistoryLine, HistoryPage, Question, Turn, TurnEvent
from workers.ops.scenario.model import GivenLine, HarnessReply, HarnessScript, PlatformAnswer
from workers.ops.scenario.result import Failure, SentRow
from workers.ops.scenario.wires import success_of, wire_of

COUNTED: Final[Mapping[str, str]] = {"get_message": "lookup", "verify": "verify", "send": "send"}
"""The name of a call in `expect.calls`."""

CREDENTIALS: Final[Mapping[str, Mapping[str, str]]] = {
    "telegram": {"token": "scenario"},
    "slack": {"token": "scenario"},
    "feishu": {"app_id": "scenario", "app_secret": "scenario"},
    "dingtalk": {"app_key": "scenario", "app_secret": "scenario"},
    "qq": {"app_id": "scenario", "secret": "scenario"},
    "discord": {"token": "scenario"},
    "weixin": {"token": "scenario"},
    "whatsapp": {
        "token": "scenario",
        "phone_number_id": "scenario",
        "secret": "scenario",
        "bridge_url": "http://bridge.invalid/",
    },
    "mock": {"callback_url": "http://mock.invalid/"},
}
"""What the real channels need to make a request at all. Nothing leaves: `.invalid` has no address (RFC 2606)."""


def with_credentials(config: Mapping[str, Any]) -> dict[str, Any]:
    """A scenario's configuration in which every account can make its requests; what it wrote itself stays."""
    accounts = [
        {**account, "credentials": {**CREDENTIALS.get(account["channel"], {}), **account.get("credentials", {})}}
        for account in config.get("accounts", ())
    ]
    return {**config, "accounts": accounts} if accounts else dict(config)


class ScriptedPlatforms:
    """The platforms of a scenario. `calls`, `sent` and `failures` are of the present step: see `next_step`."""

    def __init__(self, answers: Sequence[PlatformAnswer], clock: Clock) -> None:
        self.calls: Counter[str] = Counter()
        self.sent: list[SentRow] = []
        self.failures: list[Failure] = []
        self._answers = answers
        self._left = {n: answer.times for n, answer in enumerate(answers)}
        self._clock = clock
        self._sends = 0

    def api(self, account: str, channel: str) -> "ScriptedApi":
        """The network of one account."""
        return ScriptedApi(self, account, channel)

    def next_step(self) -> None:
        """Forget what the last step did; answers used up stay used up."""
        self.calls = Counter()
        self.sent = []
        self.failures = []

    async def answer(
        self, account: str, channel: str, call: Call, ref: str, url: str, body: Mapping[str, Any], timeout_s: float
    ) -> PlatformResponse:
        """One request. Raises Transient (never connected) or EffectUnknown, as the port says."""
        if call in COUNTED:
            self.calls[COUNTED[call]] += 1
        scripted = self._take(account, call, ref)
        if scripted is None and call == "login":
            return PlatformResponse(200, {}, _bytes(wire_of(channel).login))
        if scripted is None and call != "send":
            self.failures.append(Failure("platform", "no call without an answer", f"{account} {call} {ref}".strip()))
            raise EffectUnknown("no scripted answer")
        if scripted is not None and scripted.error is not None:
            return await self._fail(scripted, timeout_s)
        response = self._response(scripted, channel, url, body)
        wire = wire_of(channel)
        if call == "send" and 200 <= response.status < 300 and wire.took(response.json()):
            self.sent.append(wire.row(account, url, body))
        return response

    def _take(self, account: str, call: Call, ref: str) -> PlatformAnswer | None:
        for n, answer in enumerate(self._answers):
            left = self._left[n]
            if answer.account != account or answer.call != call or answer.id not in (None, ref) or left == 0:
                continue
            self._left[n] = None if left is None else left - 1
            return answer
        return None

    async def _fail(self, scripted: PlatformAnswer, timeout_s: float) -> PlatformResponse:
        match scripted.error:
            case "refused":
                raise Transient("no connection (scripted)")
            case "timeout":
                await self._clock.sleep(timeout_s)
                raise EffectUnknown("no answer in time (scripted)")
            case "connection":
                raise EffectUnknown("broken after the request was written (scripted)")
            case _:
                return PlatformResponse(200, {"content-type": "text/html"}, b"<scripted>")

    def _response(
        self, scripted: PlatformAnswer | None, channel: str, url: str, body: Mapping[str, Any]
    ) -> PlatformResponse:
        headers = {"content-type": "application/json"}
        status = 200
        wait_s = None
        if scripted is not None:
            status = scripted.status or 200
            if scripted.retry_after_ms is not None:
                wait_s = scripted.retry_after_ms / 1000
                headers["retry-after"] = str(math.ceil(wait_s))
        if scripted is not None and scripted.has_returns:
            raw = scripted.returns
            return PlatformResponse(status, headers, raw.encode() if isinstance(raw, str) else _bytes(raw))
        if status >= 300:
            return PlatformResponse(status, headers, _bytes(wire_of(channel).refusal(status, wait_s)))
        self._sends += 1
        right = success_of(channel, url, body, self._sends, self._clock.now_ms())
        return PlatformResponse(status, headers, _bytes(right))


class ScriptedApi:
    """`PlatformApi` of one account over a scenario's answers."""

    def __init__(self, platforms: ScriptedPlatforms, account: str, channel: str) -> None:
        self._platforms = platforms
        self._account = account
        self._channel = channel

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
        """One request; see `ScriptedPlatforms.answer`."""
        del method, headers, params, max_bytes
        body = json if isinstance(json, Mapping) else data or {}
        return await self._platforms.answer(self._account, self._channel, call, ref, url, body, timeout_s)


class ScriptedHarness:
    """A `Harness` that gives the scenario's replies in order, the last one again and again.

    `inputs`: every call's turn in this step; `started`: those that began for the first time; `answered`: what it was
    told by `answer`; `history_reads`: pages read. All of them are of the present step: see `next_step`.
    """

    def __init__(self, script: HarnessScript, clock: Clock, idempotent: bool) -> None:
        self.inputs: list[Turn] = []
        self.started: list[Turn] = []
        self.answered: list[str] = []
        self.history_reads = 0
        self._script = script
        self._clock = clock
        self._idempotent = idempotent
        self._next = 0
        self._seen: set[str] = set()
        self._sessions: dict[str, list[HistoryLine]] = {}

    @property
    def idempotent(self) -> bool:
        """As the scenario's configuration says."""
        return self._idempotent

    def next_step(self) -> None:
        """Forget what the last step did."""
        self.inputs = []
        self.started = []
        self.answered = []
        self.history_reads = 0

    def remember(self, session: str, lines: Sequence[GivenLine]) -> None:
        """Give a session its messages from before, oldest first."""
        known = self._sessions.setdefault(session, [])
        started_ms: int | None = None
        for n, line in enumerate(lines):
            following = lines[n + 1].role if n + 1 < len(lines) else "user"
            if line.role == "user":
                started_ms = line.at_ms
            known.append(
                HistoryLine(
                    role=line.role,
                    text=line.text,
                    at_ms=line.at_ms,
                    turn=line.turn,
                    turn_started_ms=started_ms,
                    turn_ended_ms=line.at_ms if line.role == "assistant" else None,
                    last_of_turn=following == "user",
                )
            )

    async def ask(self, turn: Turn, on_event: Callable[[TurnEvent], None]) -> Answer:
        """The next reply. Raises Transient or HarnessRefused where the scenario says so."""
        del on_event
        self.inputs.append(turn)
        if turn.id not in self._seen:
            self._seen.add(turn.id)
            self.started.append(turn)
        return await self._reply(turn)

    async def resume(self, turn: Turn, url: str, on_event: Callable[[TurnEvent], None]) -> Answer:
        """As `ask`: a resumed turn takes the next reply."""
        del url
        return await self.ask(turn, on_event)

    async def cancel(self, turn: Turn, url: str | None) -> None:
        """Nothing to stop: the caller has cancelled the task."""
        del turn, url

    async def answer(self, turn: Turn, question: Question, text: str, on_event: Callable[[TurnEvent], None]) -> Answer:
        """The asker's words are recorded, the next reply is the rest of the turn."""
        del question, on_event
        self.answered.append(text)
        return await self._reply(turn)

    async def history(self, session: str, before_ms: int, limit: int) -> HistoryPage:
        """A page of what `remember` gave and of the turns that ended since, newest first."""
        self.history_reads += 1
        if self._script.history_delay_ms:
            await self._clock.sleep(self._script.history_delay_ms / 1000)
        older = [line for line in self._sessions.get(session, []) if line.at_ms < before_ms]
        newest = sorted(older, key=lambda line: line.at_ms, reverse=True)
        return HistoryPage(tuple(newest[:limit]), more=len(newest) > limit)

    async def _reply(self, turn: Turn) -> Answer:
        replies = self._script.replies
        reply = replies[min(self._next, len(replies) - 1)]
        self._next += 1
        began_ms = self._clock.now_ms()
        if reply.delay_ms:
            await self._clock.sleep(reply.delay_ms / 1000)
        if reply.error == "transient":
            raise Transient("scripted")
        if reply.error == "permanent":
            raise HarnessRefused("scripted")
        if reply.question is not None:
            return Answer((), _question(turn, reply, self._next))
        text = turn.text if reply.text is None else reply.text
        self._record(turn, text, began_ms)
        return Answer((Part("text", text),) if text else ())

    def _record(self, turn: Turn, text: str, began_ms: int) -> None:
        ended_ms = self._clock.now_ms()
        lines = self._sessions.setdefault(turn.session, [])
        lines.append(HistoryLine("user", turn.text, began_ms, "completed", began_ms, ended_ms, last_of_turn=False))
        lines.append(HistoryLine("assistant", text, ended_ms, "completed", began_ms, ended_ms))


def input_of(turn: Turn) -> dict[str, Any]:
    """A turn under the names of `expect.harness_input`, with everything else that the harness was given."""
    return {
        "turn_id": turn.id,
        "session": turn.session,
        "text": turn.text,
        "reply_to": None if turn.reply_to is None else dict(turn.reply_to),
        "source": dict(turn.source),
        "context": [{"label": row.label, "text": row.text, "at_ms": row.at_ms} for row in turn.context],
        "title": turn.title,
        "attempt": turn.attempt,
        "prompt": turn.prompt,
        "system": list(turn.system),
        "attachments": [
            {"kind": file.kind, "name": file.name, "unavailable": file.unavailable} for file in turn.attachments
        ],
    }


def _question(turn: Turn, reply: HarnessReply, number: int) -> Question:
    kind = "approval" if reply.approval else "question"
    return Question(id=f"{turn.id}-{number}", text=reply.question or "", options=reply.options, kind=kind)


def _bytes(value: object) -> bytes:
    return json_text.dumps(value, ensure_ascii=False).encode()
