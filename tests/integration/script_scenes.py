"""The scripts with effects, each in a situation in which it has one, and what happens afterwards."""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis

from shared.redis.embedded import Kind
from shared.redis.scripts import Scripts
from tests.integration.world import server

P = "t:"
LATE_MS = 500
LANES = {"slots": {"default": 4}, "order_wait_ms": 10_000}
KEEP = {"keep_ms": 60_000, "short_ms": 60_000, "frozen_ms": 60_000}


@dataclass
class Rig:
    """Scripts on an empty server."""

    client: Any
    calls: int = 0
    letters: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        self.scripts = Scripts(self.client, P, late_ms=LATE_MS)

    def now(self) -> int:
        seconds, micros = self.client.time()
        return int(seconds) * 1000 + int(micros) // 1000

    def call(self, name: str, /, **arguments: Any) -> Any:
        self.calls += 1
        return self.scripts.call(name, self.now(), nonce=f"n{self.calls}", **arguments)

    def hget(self, id_: str, name: str) -> str:
        return self.client.hget(f"{P}rec:{id_}", name) or ""

    def held(self, name: str) -> str:
        return self.client.hget(f"{P}held", name) or ""

    def state(self) -> dict[str, Any]:
        """Every key and what it holds."""
        found: dict[str, Any] = {}
        for key in self.client.scan_iter("*", count=1000):
            match self.client.type(key):
                case "hash":
                    found[key] = self.client.hgetall(key)
                case "set":
                    found[key] = self.client.smembers(key)
                case "zset":
                    found[key] = self.client.zrange(key, 0, -1, withscores=True)
                case "list":
                    found[key] = self.client.lrange(key, 0, -1)
                case "stream":
                    found[key] = self.client.xrange(key)
                case _:
                    found[key] = self.client.get(key)
        return found

    def accept(self, *ids: str, **more: Any) -> Any:
        return self.call("accept", **accepted(*ids, **more))

    def claim(self, stage: str = "admission", token: str = "w1", limit: int = 64) -> Any:  # noqa: S107
        return self.call("claim", stage=stage, part="7", token=token, limit=limit)

    def start(self, token: str = "d1", **more: Any) -> Any:  # noqa: S107
        return self.call("start", harness="default", turn=turn_of(token, **more), **LANES)

    def move(
        self,
        *moves: dict[str, Any],
        holder: str = "admission:7",
        token: str = "w1",  # noqa: S107
        release: bool = True,
    ) -> Any:
        """The verdicts."""
        return self.call("move", **moved(*moves, holder=holder, token=token, release=release))[0]

    def step(self, id_: str) -> int:
        return int(self.hget(id_, "step"))

    def to(self, id_: str, place: str, **more: Any) -> dict[str, Any]:
        return {"id": id_, "step": self.step(id_), "to": place, **more}

    def end(self, id_: str, disposition: str = "answered", reason: str = "sent") -> dict[str, Any]:
        return {"id": id_, "step": self.step(id_), "end": [disposition, reason, "admission"]}

    def ready(self, *ids: str) -> None:
        """Accepted, claimed and frozen: the first stands in dispatch."""
        self.accept(*ids)
        self.claim()
        self.move(*(self.frozen(id_) for id_ in ids))

    def frozen(self, id_: str) -> dict[str, Any]:
        fields = {"ready_at": self.now(), "harness": "default", "back": "dispatch"}
        return self.to(id_, "parked:lane", fields=fields)

    def running(self, id_: str) -> None:
        self.ready(id_)
        self.start()

    def sending(self, id_: str) -> None:
        """Answered, with a ledger `ID-o`, under a claim of delivery."""
        self.running(id_)
        self.move(answered(self, id_), holder=f"turn:{id_}", token="d1")
        self.call("take", stage="delivery", id=id_, token="s1")

    def dead(self, id_: str) -> None:
        self.ready(id_)
        self.move(
            {**self.end(id_, "dead", "gave-up"), "effects": [["HSET", f"{P}dead:{id_}", "stage", "dispatch"]]},
            holder="",
        )


def accepted(*ids: str, lane: str = "l1", account: str = "a", most: int = 0, of_account: int = 0) -> dict[str, Any]:
    items = [
        {"id": i, "env": "{}", "part": "7", "lane": lane, "account": account, "channel": "mock", "fkey": i, "at": 1}
        for i in ids
    ]
    return {"items": items, "max_depth": most, "max_account_depth": of_account}


def moved(*moves: dict[str, Any], holder: str, token: str, release: bool) -> dict[str, Any]:
    return {"holder": holder, "token": token, "release": release, "moves": list(moves), **LANES, **KEEP}


def turn_of(token: str, fresh: str = "s1", idle_ms: int = 0) -> dict[str, Any]:
    return {"token": token, "fresh": fresh, "idle": {"default": idle_ms}, "touch_ms": 3_600_000, "binding_ms": 60_000}


def answered(rig: Rig, id_: str) -> dict[str, Any]:
    fields = {"out": f"{id_}-o", "parts": "[]", "back": "delivery"}
    return rig.to(id_, "delivery", fields=fields, lane_state="answered")


def asking(id_: str, token: str = "s1", **more: Any) -> dict[str, Any]:  # noqa: S107
    """What send.lua is asked for the first part of a turn's answer."""
    busy = {"busy": f"{P}busy:a", "most": 4, "busy_ms": 60_000}
    return {
        "out": f"{id_}-o", "part": 0, "token": token, "holder": f"delivery:{id_}", "switches": [], "rates": [], **busy,
        **more,
    }  # fmt: skip


def told(id_: str, state: str = "sent", token: str = "s1") -> dict[str, Any]:  # noqa: S107
    """What ledger.lua is told of it."""
    return {
        "out": f"{id_}-o", "part": 0, "token": token, "state": state, "detail": "x", "busy": f"{P}busy:a",
        "member": f"delivery:{id_}",
    }  # fmt: skip


def result_of(id_: str, state: str = "sent", token: str = "s1") -> list[Any]:  # noqa: S107
    """The same with a move."""
    return [f"{id_}-o", 0, token, state, "x", f"{P}busy:a"]


Prepared = tuple[str, dict[str, Any], Callable[[], Any]]
Scene = Callable[[Rig], Prepared]
"""Prepares a situation; gives the script, its arguments, and what happens after it."""


def accept(rig: Rig) -> Prepared:
    return "accept", accepted("m1", "m2"), lambda: (rig.claim(), rig.move(rig.end("m1"), rig.end("m2")))


def claim(rig: Rig) -> Prepared:
    rig.accept("m1")
    arguments = {"stage": "admission", "part": "7", "token": "w1", "limit": 64}
    return "claim", arguments, lambda: (rig.move(rig.to("m1", "engagement")), rig.accept("m2"))


def take(rig: Rig) -> Prepared:
    rig.accept("m1")
    rig.claim()
    rig.move(rig.to("m1", "quotes"))
    arguments = {"stage": "quotes", "id": "m1", "token": "q1"}
    return "take", arguments, lambda: rig.call("release", name="quotes:m1", token="q1")


def start(rig: Rig) -> Prepared:
    rig.ready("m1", "m2")

    def later() -> None:
        rig.move(rig.to("m1", "due", score=0, fields={"back": "dispatch"}), holder="turn:m1", token="d1")
        rig.call("fire", limit=9, **LANES)

    return "start", {"harness": "default", "turn": turn_of("d1"), **LANES}, later


def move_on(rig: Rig) -> Prepared:
    rig.accept("m1", "m2")
    rig.claim()
    moves = [rig.to("m1", "engagement"), rig.to("m2", "due", score=5, fields={"back": "engagement"})]
    arguments = moved(*moves, holder="admission:7", token="w1", release=True)
    return "move", arguments, lambda: (rig.call("fire", limit=9, **LANES), rig.claim("engagement", "w2"))


def move_end(rig: Rig) -> Prepared:
    rig.accept("m1", "m2")
    rig.claim()
    effects = [["HINCRBY", f"{P}bots:a", "c", 1]]
    claims = {"claims": [f"{P}dup:k", f"{P}dup:l"], "claim": "m1|x"}
    moves = [{**rig.end("m1"), "effects": effects, **claims, "fields": {"dups": "k,l", "dup_ms": 90_000}}]
    return "move", moved(*moves, holder="admission:7", token="w1", release=False), lambda: rig.move(rig.end("m2"))


def move_freeze(rig: Rig) -> Prepared:
    rig.accept("m1")
    rig.claim()
    frozen = {**rig.frozen("m1"), "freeze": [f"{P}frozen:m1", "bytes"]}
    arguments = moved(frozen, holder="admission:7", token="w1", release=True)
    return "move", arguments, lambda: rig.start()


def move_creates(rig: Rig) -> Prepared:
    rig.running("m1")
    notice = {"id": "m1-n", "fields": {"account": "a", "parts": "[]"}}
    dead = {**rig.end("m1", "dead", "turn-timeout"), "creates": [notice]}
    arguments = moved(dead, holder="turn:m1", token="d1", release=True)

    def later() -> None:
        rig.call("take", stage="delivery", id="m1-n", token="s1")
        rig.move(rig.end("m1-n", "sent"), holder="delivery:m1-n", token="s1")

    return "move", arguments, later


def move_stop(rig: Rig) -> Prepared:
    rig.running("m1")
    rig.accept("m2")
    rig.claim()
    moves = [{**rig.end("m2", "replied", "command.stop"), "stop": True}]
    arguments = moved(*moves, holder="admission:7", token="w1", release=True)
    return "move", arguments, lambda: rig.move(rig.end("m1", "cancelled", "stop"), holder="turn:m1", token="d1")


def move_breaker(rig: Rig) -> Prepared:
    rig.running("m1")
    failed = {"harness": "default", "event": "fail", "failures": 2, "open_ms": 1000}
    retry = rig.to("m1", "due", score=5, fields={"back": "dispatch"}, breaker=failed)
    return "move", moved(retry, holder="turn:m1", token="d1", release=True), lambda: rig.call("fire", limit=9, **LANES)


def send(rig: Rig) -> Prepared:
    rig.sending("m1")
    return "send", asking("m1"), lambda: rig.call("ledger", **told("m1"))


def result(rig: Rig) -> Prepared:
    rig.sending("m1")
    rig.call("send", **asking("m1"))
    return "ledger", told("m1"), lambda: rig.move(rig.end("m1"), holder="delivery:m1", token="s1")


def move_result(rig: Rig) -> Prepared:
    rig.sending("m1")
    rig.call("send", **asking("m1"))
    ends = {**rig.end("m1"), "result": result_of("m1")}
    return "move", moved(ends, holder="delivery:m1", token="s1", release=True), lambda: rig.accept("m2")


def move_next_batch(rig: Rig) -> Prepared:
    rig.accept("m1", "m2")
    rig.claim(limit=1)
    arguments = moved(rig.to("m1", "engagement"), holder="admission:7", token="w1", release=False)
    more = {"stage": "admission", "part": "7", "limit": 1}
    return "move", {**arguments, "next": more}, lambda: rig.move(rig.end("m2"))


def move_next_turn(rig: Rig) -> Prepared:
    rig.running("m1")
    rig.accept("m2", lane="l2")
    rig.claim()
    rig.move(rig.frozen("m2"))
    arguments = moved(answered(rig, "m1"), holder="turn:m1", token="d1", release=True)
    more = {"stage": "dispatch", **turn_of("d2")}

    def later() -> None:
        rig.call("take", stage="delivery", id="m1", token="s1")
        rig.move(rig.end("m1"), holder="delivery:m1", token="s1")
        rig.move(answered(rig, "m2"), holder="turn:m2", token="d2")

    return "move", {**arguments, "next": more}, later


def reopen(rig: Rig) -> Prepared:
    rig.dead("m1")
    arguments = {
        "id": "m1", "to": "dispatch", "reset": [], "letter": f"{P}dead:m1", "index": f"{P}deads:dispatch",
        "keep_ms": 60_000, "lane_max": 50, **LANES,
    }  # fmt: skip

    def later() -> None:
        rig.start("d2")
        rig.move(rig.end("m1", "dead", "gave-up"), holder="turn:m1", token="d2")

    return "reopen", arguments, later


def takeover(rig: Rig) -> Prepared:
    rig.running("m1")
    arguments = {"name": "turn:m1", "seen": rig.held("turn:m1"), "token": "keeper"}
    return "takeover", arguments, lambda: rig.move(rig.end("m1", "dead"), holder="turn:m1", token="keeper")


def fire(rig: Rig) -> Prepared:
    rig.accept("m1", "m2")
    rig.claim()
    rig.move(rig.to("m1", "due", score=5, fields={"back": "engagement"}), {**rig.frozen("m2")})
    return "fire", {"limit": 9, **LANES}, lambda: (rig.claim("engagement", "w2"), rig.accept("m3"))


def release(rig: Rig) -> Prepared:
    rig.accept("m1")
    rig.claim()
    return "release", {"name": "admission:7", "token": "w1"}, lambda: rig.claim(token="w2")


def hold(rig: Rig) -> Prepared:
    return "hold", {"name": "keeper", "token": "k1"}, lambda: rig.call("release", name="keeper", token="k1")


SCENES: dict[str, Scene] = {
    scene.__name__: scene
    for scene in (
        accept,
        claim,
        take,
        start,
        move_on,
        move_end,
        move_freeze,
        move_creates,
        move_stop,
        move_breaker,
        move_result,
        move_next_batch,
        move_next_turn,
        send,
        result,
        reopen,
        takeover,
        fire,
        release,
        hold,
    )
}


@contextmanager
def rig(folder: Path, kind: Kind) -> Generator[Rig]:
    with server(folder, kinds=[kind]) as on, redis.Redis.from_url(on.url, decode_responses=True) as client:
        yield Rig(client)


def wakes(rig: Rig, stage: str) -> list[str]:
    """The names that a stage's wake-ups carry."""
    return [json.loads(json.loads(raw)["body"])[0][0] for raw in rig.client.lrange(f"{P}wake.{stage}", 0, -1)]
