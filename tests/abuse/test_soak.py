"""A mixed load on real processes: what they hold does not grow, neither in memory nor in Redis.

A minute by default; an hour with `MILLSTREAM_FULL=1`; as long as `MILLSTREAM_SOAK_S` says.
"""

import http.client
import json
import os
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.abuse.crowd import rss_kb
from tests.abuse.hostile import FULL
from tests.integration.world import STAGES, World, eventually, server, world

SOAK_S = float(os.environ.get("MILLSTREAM_SOAK_S") or (3600 if FULL else 45))
WARM_UP = 0.4
"""The part of the time after which everything that is made once has been made: caches, threads, connections."""
PEOPLE, GROUPS, POSTERS = 40, 10, 3
BACKLOG = 300
"""Messages under way at most: the load is a steady one, not a flood."""
GROWTH_KB = 8_192
"""A process may have grown by so much from the warm-up to the end: a kilobyte a message would be several times as
much. Over an hour it is the same."""
LASTING_KEYS = 200
"""Keys without an expiry may have come by so many: people and groups are the same all the time."""


@dataclass
class Load:
    """Events of every kind, made until it is told to stop. `sent` counts them by kind."""

    hook: str
    depth: Callable[[], int]
    sent: Counter[str] = field(default_factory=Counter[str])
    number: int = 0
    stop: bool = False
    faults: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.rng = random.Random(7)
        self.lock = threading.Lock()
        self.past: deque[dict[str, Any]] = deque(maxlen=50)

    def event(self) -> dict[str, Any]:
        with self.lock:
            kind = self.rng.choices(("private", "group", "again", "command", "quote"), (35, 35, 10, 10, 10))[0]
            if kind == "again" and self.past:
                self.sent[kind] += 1
                return self.rng.choice(self.past)
            self.number += 1
            person = f"p{self.rng.randrange(PEOPLE)}"
            made: dict[str, Any] = {"message_id": f"m{self.number}", "sender": person, "text": f"tide {self.number}?"}
            if kind == "group":
                made |= {"chat": f"g{self.rng.randrange(GROUPS)}", "chat_type": "group"}
            elif kind == "command":
                made["text"] = self.rng.choice(("/help", "/status", "/new", "/whoami"))
            elif kind == "quote":
                made["reply_to"] = {"message_id": f"m{self.number - 1}", "author_id": "bob", "content": "before " * 50}
            self.past.append(made)
            self.sent[kind] += 1
            return made

    def post(self) -> None:
        """One poster's life, on one connection."""
        host, path = self.hook.removeprefix("http://").split("/", 1)
        connection = http.client.HTTPConnection(host, timeout=30)
        while not self.stop:
            if self.depth() > BACKLOG:
                time.sleep(0.05)
                continue
            body = json.dumps([self.event() for _ in range(5)])
            try:
                connection.request("POST", f"/{path}", body)
                answer = connection.getresponse()
                answer.read()
                if answer.status not in (200, 503):
                    self.faults.append(f"{answer.status}")
            except (OSError, http.client.HTTPException):
                connection.close()  # an idle connection was closed by the server just now
        connection.close()


@dataclass(frozen=True)
class Sample:
    """What is held at one moment: KiB by process, Redis' bytes, keys in all and those that never expire."""

    at_s: float
    rss: dict[str, int]
    redis: int
    keys: int
    lasting: Counter[str]


def sample(now: World, started: float) -> Sample:
    client = now.process.client
    keys = list(client.scan_iter(f"{now.process.keys.prefix}*", count=2000))
    with client.pipeline(transaction=False) as pipe:
        for key in keys:
            pipe.pttl(key)
        ttls = pipe.execute()
    plain = (key.removeprefix(now.process.keys.prefix) for key, ttl in zip(keys, ttls, strict=True) if ttl == -1)
    lasting = Counter(key.split(":")[0] for key in plain)
    rss = {child.stage: rss_kb(child.pid) for child in now.children}
    return Sample(time.monotonic() - started, rss, int(client.info("memory")["used_memory"]), len(keys), lasting)


@pytest.mark.slow
@pytest.mark.timeout(SOAK_S + 240)
@pytest.mark.xdist_group("chaos")
def test_memory_stays_flat_under_a_mixed_load(tmp_path: Path) -> None:
    day_s = 86_400
    account = {
        "id": "demo", "channel": "mock", "self_id": "bot", "members": [f"p{n}" for n in range(PEOPLE)],
        "direct_per_minute": 0, "ack": "none", "join_s": 0,
    }  # fmt: skip
    tables = {
        "pipeline": {"lane_max": 1000, "decision_days": 5 / day_s, "frozen_days": 5 / day_s},
        "notices": {"queued": ""},
        "accounts": [account],
    }
    with server(tmp_path) as on, world(tmp_path, on, **tables) as now:
        now.start("ingest", *STAGES, "keeper")
        load = Load(now.hook("demo"), now.depth)
        posters = [threading.Thread(target=load.post, daemon=True) for _ in range(POSTERS)]
        for poster in posters:
            poster.start()
        started = time.monotonic()
        samples: list[Sample] = []
        try:
            while time.monotonic() - started < SOAK_S:
                time.sleep(SOAK_S / 30)
                samples.append(sample(now, started))
        finally:
            load.stop = True
            for poster in posters:
                poster.join(30)
        now.rest(90)
        end = sample(now, started)
        accepted = sum(load.sent.values())
        warm = next(one for one in samples if one.at_s >= WARM_UP * SOAK_S)
        told(warm, samples, end, load)
        assert load.faults == []
        assert all(load.sent[kind] for kind in ("private", "group", "again", "command", "quote"))
        assert accepted > 5 * SOAK_S, "a load worth the name"
        last = samples[-1]
        grown = {stage: last.rss[stage] - warm.rss[stage] for stage in last.rss}
        assert max(grown.values()) < GROWTH_KB, grown
        assert (end.lasting - warm.lasting).total() < LASTING_KEYS, end.lasting - warm.lasting
        assert all(child.alive() for child in now.children)
        eventually(lambda: not sample(now, started).lasting["rec"], 30, "records that last")


def told(warm: Sample, samples: list[Sample], end: Sample, load: Load) -> None:
    """The figures, for whoever reads the log."""
    first, last = samples[0], samples[-1]
    print(f"\n{sum(load.sent.values())} messages in {last.at_s:.0f} s: {dict(load.sent)}")
    for stage in last.rss:
        words = " -> ".join(f"{one.rss[stage] / 1024:.1f}" for one in (first, warm, last))
        print(f"{stage:12} RSS MiB at start, after the warm-up, at the end: {words}")
    words = " -> ".join(f"{one.redis / 1_048_576:.1f}" for one in (first, warm, last, end))
    print(f"Redis MiB: {words}; keys {first.keys} -> {warm.keys} -> {last.keys}")
    print(f"keys without expiry: {warm.lasting.total()} -> {end.lasting.total()} at rest: {dict(end.lasting)}")
