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
LATE_MS = 100
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

    def claim(self, stage: str = "admission", token: str = "w1") -> Any:  # noqa: S107
        return self.call("claim", stage=stage, part="7", token=token, limit=64)

    def move(
        self,
        *moves: dict[str, Any],
        holder: str = "admission:7",
        token: str = "w1",  # noqa: S107
        release: bool = True,
    ) -> Any:
        return self.call("move", **moved(*moves, holder=holder, token=token, release=release))

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
        fields = {"ready_at": self.now(), "harness": "default", "back": "dispatch", "turn": "1"}
        return self.to(id_, "parked:lane", fields=fields)

    def running(self, id_: str) -> None:
        self.ready(id_)
        self.call("start", harness="default", token="d1", **LANES)

    def sending(self, id_: str) -> None:
        """Answered, with an outbound record `ID-o` under a claim of delivery."""
        self.running(id_)
        self.move(answered(self, id_), holder=f"turn:{id_}", token="d1")
        self.call("take", stage="delivery", id=f"{id_}-o", token="s1")

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


def answered(rig: Rig, id_: str) -> dict[str, Any]:
    create = {"id": f"{id_}-o", "fields": {"parent": id_, "account": "a", "parts": "[]"}}
    return rig.to(id_, "parked:outbound", fields={"out": f"{id_}-o"}, lane_state="answered", creates=[create])


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

    return "start", {"harness": "default", "token": "d1", **LANES}, later


def move_on(rig: Rig) -> Prepared:
    rig.accept("m1", "m2")
    rig.claim()
    moves = [rig.to("m1", "engagement"), rig.to("m2", "due", score=5, fields={"back": "engagement"})]
    arguments = moved(*moves, holder="admission:7", token="w1", release=True)
    return "move", arguments, lambda: (rig.call("fire", limit=9, **LANES), rig.claim("engagement", "w2"))


def move_end(rig: Rig) -> Prepared:
    rig.accept("m1", "m2")
    rig.claim()
    effects = [["SET", f"{P}dup:k", "m1|x"], ["HINCRBY", f"{P}bots:a", "c", 1]]
    moves = [{**rig.end("m1"), "effects": effects, "fields": {"dups": "k", "dup_ms": 90_000}}]
    return "move", moved(*moves, holder="admission:7", token="w1", release=False), lambda: rig.move(rig.end("m2"))


def move_freeze(rig: Rig) -> Prepared:
    rig.accept("m1")
    rig.claim()
    arguments = moved(rig.frozen("m1"), holder="admission:7", token="w1", release=True)
    return "move", arguments, lambda: rig.call("start", harness="default", token="d1", **LANES)


def move_creates(rig: Rig) -> Prepared:
    rig.running("m1")
    arguments = moved(answered(rig, "m1"), holder="turn:m1", token="d1", release=True)

    def later() -> None:
        rig.call("take", stage="delivery", id="m1-o", token="s1")
        rig.move(rig.end("m1"), rig.end("m1-o", "sent"), holder="delivery:m1-o", token="s1")

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


def intent(rig: Rig) -> Prepared:
    rig.sending("m1")
    arguments = {"op": "intent", "id": "m1-o", "part": 0, "token": "s1", "holder": "delivery:m1-o"}
    more = {"op": "result", "id": "m1-o", "part": 0, "token": "s1", "holder": "", "state": "sent", "detail": "x"}
    return "ledger", arguments, lambda: rig.call("ledger", **more)


def result(rig: Rig) -> Prepared:
    rig.sending("m1")
    own = {"id": "m1-o", "part": 0, "token": "s1", "holder": "delivery:m1-o"}
    rig.call("ledger", op="intent", **own)
    arguments = {"op": "result", **own, "state": "sent", "detail": "x"}

    def later() -> None:
        rig.move(rig.end("m1"), rig.end("m1-o", "sent"), holder="delivery:m1-o", token="s1")

    return "ledger", arguments, later


def reopen(rig: Rig) -> Prepared:
    rig.dead("m1")
    arguments = {
        "id": "m1", "to": "dispatch", "out": "", "reset": [], "letter": f"{P}dead:m1", "index": f"{P}deads:dispatch",
        "keep_ms": 60_000, "lane_max": 50, **LANES,
    }  # fmt: skip

    def later() -> None:
        rig.call("start", harness="default", token="d2", **LANES)
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
        intent,
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
