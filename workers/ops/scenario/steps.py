"""The steps of a scenario: each does something to the world, lets it come to rest, and tells what it came to."""

import json
from collections import Counter
from typing import Any

import httpx

from ingest.app import make_app
from shared import metrics
from shared.channels import channel
from shared.frozen import FrozenTurn
from shared.index import IndexEntry, OutboundIndex
from shared.message import Message, lane_of
from shared.outcome import Stage
from workers.deadletters import store
from workers.ops import session
from workers.ops.scenario.messages import message_of, normalised_of
from workers.ops.scenario.model import (
    Advance,
    Approve,
    Burst,
    Cli,
    Fault,
    Http,
    Receive,
    Redeliver,
    Reject,
    Replay,
    Restart,
    Say,
    Scenario,
    Send,
    Set,
    Step,
)
from workers.ops.scenario.result import Failure, StepResult
from workers.ops.scenario.scripted import input_of
from workers.ops.scenario.world import World

PLACES: dict[str, Stage] = {
    "admission": "admission", "engagement": "engagement", "judge": "judge", "quotes": "quotes",
    "dispatch": "dispatch", "running": "dispatch", "parked:lane": "dispatch", "due": "dispatch",
    "delivery": "delivery", "ended": "delivery",
}  # fmt: skip
"""Which stage's wake-up stands for a message at a place, for `redeliver: {as: broker}`."""


class Steps:
    """Runs the steps of one scenario in its world. `lines` are the log lines of the present step."""

    def __init__(self, world: World, scenario: Scenario, lines: list[dict[str, Any]]) -> None:
        self._world = world
        self._scenario = scenario
        self._lines = lines
        self._published: dict[int, list[Message]] = {}
        self._ids: dict[int, list[str]] = {}
        self._serial = 0
        self._audited = "0"
        self._letters: set[tuple[str, int]] = set()
        self._fault: str | None = None
        self._given()

    async def run(self, step: Step) -> StepResult:
        """Do one step and let the world come to rest."""
        world, result = self._world, StepResult()
        self._forget()
        if isinstance(step.action, Fault):
            self._fault = step.action.point
            return result
        world.probe.fault, self._fault = self._fault, None
        logs = self._log_lengths()
        at_ms = step.at.resolve(world.clock.now_ms())
        if isinstance(step.action, Advance):
            at_ms = world.clock.now_ms() + step.action.ms
        await world.advance(at_ms)
        ids = await self._act(step, result)
        await world.finish_calls()
        if world.probe.fault is not None:
            result.failures.append(
                Failure("fault", f"the worker dies at {world.probe.fault}", "the point is not reached")
            )
            world.probe.fault = None
        self._collect(step, result, ids, at_ms, logs)
        return result

    async def _act(self, step: Step, result: StepResult) -> list[str]:
        number = step.number
        match step.action:
            case Say() as said:
                message = self._message(said)
                result.normalised = normalised_of(message)
                return await self._publish(number, [message])
            case Burst(says):
                return await self._publish(number, [self._message(said) for said in says])
            case Receive() as action:
                return await self._receive(number, action, result)
            case Redeliver() as action:
                return await self._redeliver(number, action)
            case Set() as action:
                self._set(action)
            case Replay(wanted):
                for letter in store.find(self._world.ctx, **wanted):
                    store.replay(self._world.ctx, letter, "scenario")
            case Restart(what):
                self._world.restart(what)
            case Cli(args):
                self._cli(list(args), result)
            case Advance() | Fault() | Send() | Http() | Approve() | Reject():
                pass  # time has passed; the rest is refused before a scenario runs (unbuilt.py)
        return []

    async def _publish(self, number: int, messages: list[Message]) -> list[str]:
        ids = await self._world.publish(messages)
        self._published[number], self._ids[number] = messages, ids
        return ids

    def _message(self, said: Say) -> Message:
        self._serial += 1
        account = self._world.settings.account(said.account)
        if account is None:
            raise LookupError(said.account)
        return message_of(said, account, self._serial, self._world.clock.now_ms())

    async def _receive(self, number: int, action: Receive, result: StepResult) -> list[str]:
        account = self._world.ctx.settings.account(action.account)
        if account is None:
            raise LookupError(action.account)
        if action.raw is not None:
            return await self._webhook(number, action, result)
        messages = channel(account.channel).normalise(action.event, account)
        if messages:
            result.normalised = normalised_of(messages[0])
        return await self._publish(number, messages) if messages else []

    async def _webhook(self, number: int, action: Receive, result: StepResult) -> list[str]:
        world, ids = self._world, list[str]()

        async def ready() -> bool:
            return True

        app = make_app(lambda: world.ctx.settings, _Recording(world, ids), world.clock, lambda: True, ready)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://scenario") as client:
            answer = await client.post(
                f"/hooks/{action.account}", content=action.raw or "", headers=dict(action.headers)
            )
        result.http = answer.status_code
        self._ids[number] = ids
        return ids

    async def _redeliver(self, number: int, action: Redeliver) -> list[str]:
        before = action.step
        if action.by == "platform":
            return await self._publish(number, self._published[before])
        id_ = self._ids[before][0]
        record = self._world.client.hgetall(self._world.process.keys.record(id_))
        place, back = record.get("place", "ended"), record.get("back", "")
        stage = PLACES.get(back if place == "due" and back in PLACES else place, "delivery")
        names = {"admission": record.get("part"), "engagement": record.get("part"), "dispatch": record.get("harness")}
        name = record.get("out") if stage == "delivery" else names.get(stage, id_)
        if name:
            self._world.wake(stage, name)
        self._ids[number], self._published[number] = [id_], self._published.get(before, [])
        return [id_]

    def _set(self, action: Set) -> None:
        world = self._world
        for name, on in action.switches.items():
            world.ctx.switches.write(name, on, "scenario", world.clock.now_ms())
        for account in action.accounts:
            world.ctx.access.replace(account["id"], **{k: v for k, v in account.items() if k != "id"})

    def _cli(self, args: list[str], result: StepResult) -> None:
        token = session.current.set(self._world.ctx)
        try:
            result.exit, result.output = session.invoke(args)
        finally:
            session.current.reset(token)
        try:
            result.json = json.loads(result.output)
        except ValueError:
            result.json = None

    def _forget(self) -> None:
        world = self._world
        world.platforms.next_step()
        world.harness.next_step()
        world.probe.ended.clear()
        world.probe.firsts.clear()
        world.probe.counts.clear()

    def _collect(self, step: Step, result: StepResult, ids: list[str], at_ms: int, logs: dict[str, int]) -> None:
        world, keys = self._world, self._world.process.keys
        result.elapsed_ms = world.clock.now_ms() - at_ms
        if ids:
            record = world.client.hgetall(keys.record(ids[0]))
            result.disposition = record.get("disposition")
            result.reason, result.stage = record.get("reason"), record.get("stage")
        ended = Counter(world.client.hget(keys.record(i), "disposition") for i in world.probe.ended)
        messages = [i for i in world.probe.ended if world.client.hget(keys.record(i), "kind") == "msg"]
        result.dispositions = (
            dict(Counter(world.client.hget(keys.record(i), "disposition") for i in messages)) if ended else {}
        )
        if world.harness.inputs:
            result.prompt, result.system = world.harness.inputs[-1].prompt, world.harness.inputs[-1].system
        result.harness_inputs = [input_of(turn) for turn in world.harness.inputs]
        result.sent = list(world.platforms.sent)
        result.failures += world.platforms.failures
        result.calls = {
            "harness": len(world.harness.inputs),
            "history": world.harness.history_reads,
            "judge": world.probe.counts["judge"],
            "index_read": world.probe.counts["index.read"],
            "index_write": world.probe.counts["index.write"],
            **{name: world.platforms.calls[name] for name in ("lookup", "verify", "send")},
        }
        result.turns = len(world.probe.firsts)
        result.order = [self._text_of(i) for i in world.probe.firsts]
        result.registered = self._registered(logs)
        result.gate = self._gate(step)
        result.index_size = {a.id: self._index(a.id).size(world.clock.now_ms()) for a in world.settings.accounts}
        result.audit = self._audit()
        result.dead = self._dead()
        result.warnings = sum(line["level"] == "warning" and line["event"] != "stage_done" for line in self._lines)
        result.log_text = "\n".join(
            [json.dumps(line, ensure_ascii=False, default=str) for line in self._lines]
            + [json.dumps(row, ensure_ascii=False) for row in result.audit]
            + [metrics.render().decode()]
        )

    def _text_of(self, id_: str) -> str:
        stored = self._world.client.get(
            self._world.process.keys.frozen_of(
                self._world.client.hget(self._world.process.keys.record(id_), "fkey") or ""
            )
        )
        return FrozenTurn.decode(stored).text if stored else ""

    def _log_lengths(self) -> dict[str, int]:
        client, pattern = self._world.client, self._world.process.keys.log("*")
        return {key: client.llen(key) for key in client.scan_iter(pattern)}

    def _registered(self, before: dict[str, int]) -> list[dict[str, str]]:
        rows: list[dict[str, Any]] = []
        for key, length in self._log_lengths().items():
            new = length - before.get(key, 0)
            rows += [json.loads(r) for r in self._world.client.lrange(key, 0, new - 1)] if new > 0 else []
        rows.sort(key=lambda row: row["at_ms"])
        return [{"text": row["text"], "label": row["label"]} for row in rows]

    def _gate(self, step: Step) -> str | None:
        messages = self._published.get(step.number) or self._published.get(max(self._published, default=0))
        if not messages:
            return None
        key = self._world.process.keys.cooldown(messages[0].account, messages[0].chat_id)
        until = int(self._world.client.get(key) or 0)
        return "cooldown" if until > self._world.clock.now_ms() else "idle"

    def _audit(self) -> list[dict[str, Any]]:
        rows = self._world.client.xrange(
            self._world.process.keys.audit, f"({self._audited}" if self._audited != "0" else "-"
        )
        if rows:
            self._audited = rows[-1][0]
        return [json.loads(fields["row"]) for _, fields in rows]

    def _dead(self) -> list[dict[str, Any]]:
        letters = store.find(self._world.ctx)
        new = [letter for letter in letters if (letter.id, letter.dead_at) not in self._letters]
        self._letters = {(letter.id, letter.dead_at) for letter in letters}
        return [{"stage": letter.stage, "reason": letter.reason} for letter in new]

    def _given(self) -> None:
        world = self._world
        for number, given in enumerate(self._scenario.given.sessions):
            session = f"given-{number}"
            lane = lane_of(given.account, given.chat, given.thread, None)
            world.sessions.bind(lane, session, world.clock.now_ms())
            world.harness.remember(session, given.lines)
        for number, given in enumerate(self._scenario.given.index):
            entry = IndexEntry(given.scope, given.text, given.sent_at_ms, given.completed_at_ms, given.ids)
            self._index(given.account).add(entry, world.clock.now_ms(), f"given-{number}")

    def _index(self, account: str) -> OutboundIndex:
        return OutboundIndex(self._world.process.scripts, account, self._world.ctx.settings.index)


class _Recording:
    """The publisher of a webhook in a scenario, remembering what it made."""

    def __init__(self, world: World, ids: list[str]) -> None:
        self._world = world
        self._ids = ids

    async def accept(self, messages: Any, received_at_ms: int) -> Any:
        """As the publisher."""
        accepted = await self._world.publisher.accept(messages, received_at_ms)
        self._ids += accepted.ids
        return accepted
