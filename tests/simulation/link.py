"""The way to the server, with its faults: calls never happen, come twice or late, are refused, or go unanswered."""

import heapq
import json
import random
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, Final

from redis import exceptions as redis_errors

from shared.redis.client import Redis
from shared.redis.scripts import AT_THE_LIMIT, Scripts
from tests.simulation.strands import Crew
from workers.ops.scenario.clock import ScenarioClock

READS: Final = frozenset({"get", "mget", "hget", "hmget", "hgetall", "lrange", "zscore", "zrange", "zcard", "exists"})
REPEATABLE: Final = READS | {"evalsha", "eval", "set", "hset", "zrem"}
"""Commands that redis-py may send a second time, as it does with every command whose answer was lost."""
GROWING: Final = frozenset({"set", "hset", "hsetnx", "hincrby", "rpush", "lpush", "zadd", "sadd", "xadd", "incr"})
"""Direct commands that a server whose memory is full refuses."""
TYPED: Final = frozenset({"lpush", "xadd"})
"""Effects of moves that fail on a string, of keys that no guard of a move looks at."""
FAULTS: Final = ("never", "lost", "twice", "twice", "late", "again late")
LATE_MS: Final = 8_000
"""Of the scripts, as in real life, but as short as everything else here."""
LATE: Final = (50, 500, 3_000, 7_000, 9_000, 20_000)
"""How late a call comes, ms; its caller has given up."""
SHIM: Final = """
local TRUE_MS = tonumber(ARGV[2])
local redis = setmetatable({call = function(command, ...)
  if command == 'TIME' then return {math.floor(TRUE_MS / 1000), TRUE_MS % 1000 * 1000} end
  return redis.call(command, ...)
end}, {__index = redis})
"""
"""Stands before every script: `TIME` is the world's."""

Told = Callable[[str, dict[str, Any], Any, set[bool]], None]


class Link:
    """A client for the strands: every call is a point where another strand may go first, and may fail.

    share: of all calls that fail in one of the ways of FAULTS. next_fault: of the driver's own next call, which nobody
    can get ahead of. down: nobody is served. full: the server's memory is. real: the client itself, for what is no call
    of the pipeline. spoils: share of the moves that fail inside.
    """

    def __init__(
        self, real: Redis, crew: Crew, rng: random.Random, note: Callable[[str], None], clock: ScenarioClock
    ) -> None:
        self.share = 0.0
        self.next_fault = ""
        self.down = False
        self.full = False
        self.spoils = 0.0
        self.broken = 0
        self.real = real
        self.clock = clock
        self._crew = crew
        self._rng = rng
        self._note = note
        self._late: list[tuple[int, int, str, Callable[[], Any]]] = []
        self._serial = count()

    def pipeline(self, *args: Any, **kwargs: Any) -> "_Pipeline":
        """A pipeline: one call, when it is executed."""
        return _Pipeline(self, self.real.pipeline(*args, **kwargs))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self.real, name)
        return lambda *args, **kwargs: self.through(name, lambda: call(*args, **kwargs), grows=name in GROWING)

    def through(self, name: str, call: Callable[[], Any], *, grows: bool = False) -> Any:
        """Carry out one call. Raises redis errors where the seed says so, WorkerDied when the caller is dead."""
        strand = self._crew.current
        fault, self.next_fault = self.next_fault, ""
        since = self.broken
        if strand is not None:
            strand.pause()
        if strand is not None and self.share and self._rng.random() < self.share:
            fault = self._rng.choice(FAULTS)
            self._note(f"{name} {fault}")
        if fault == "never" or self.down or (since != self.broken and self._rng.random() < 0.5):
            raise redis_errors.ConnectionError("never happened (simulated)")
        if self.full and grows:
            raise redis_errors.OutOfMemoryError("command not allowed when used memory > 'maxmemory' (simulated)")
        if fault in ("late", "again late") and name in REPEATABLE:
            at_ms = self.clock.now_ms() + self._rng.choice(LATE)
            heapq.heappush(self._late, (at_ms, next(self._serial), name, call))
        if fault == "late":
            raise redis_errors.TimeoutError("no answer in time (simulated)")
        answer = call()
        if fault == "twice" and name in REPEATABLE:
            if strand is not None:
                strand.pause()
            answer = call()
        if fault == "lost":
            raise redis_errors.TimeoutError("its answer was lost (simulated)")
        return answer

    def late_ms(self) -> int | None:
        """When the next late call comes."""
        return self._late[0][0] if self._late else None

    def arrive(self) -> None:
        """The late calls whose time has come happen; nobody hears their answers."""
        while self._late and self._late[0][0] <= self.clock.now_ms():
            _, _, name, call = heapq.heappop(self._late)
            self._note(f"a late {name} comes")
            call()

    @contextmanager
    def spoiled(self, script: str, argument: str) -> Generator[None]:
        """Where the seed says so the first effect of a move meets a key of the wrong type, so that it fails inside."""
        keys: list[str] = []
        if script == "move" and self.spoils and self._rng.random() < self.spoils:
            first = [m["effects"][0] for m in json.loads(argument)["moves"] if m.get("effects")]
            keys = [str(effect[1]) for effect in first if str(effect[0]).lower() in TYPED]
        if not keys:
            yield
            return
        key = self._rng.choice(keys)
        self._note(f"{key} is of the wrong type")
        kept = bool(self.real.exists(key))
        if kept:
            self.real.rename(key, f"{key}:kept")
        self.real.set(key, "spoiled")
        try:
            yield
        finally:
            self.real.delete(key)
            if kept:
                self.real.rename(f"{key}:kept", key)

    def cut(self) -> None:
        """Every connection breaks: what was under way is gone."""
        self._late.clear()
        self.broken += 1


class _Pipeline:
    def __init__(self, link: Link, real: Any) -> None:
        self._link = link
        self._real = real

    def execute(self) -> Any:
        grows = any(str(args[0]).lower() in GROWING for args, _ in self._real.command_stack)
        return self._link.through("pipeline", self._real.execute, grows=grows)

    def __enter__(self) -> "_Pipeline":
        return self

    def __exit__(self, *_: object) -> None:
        self._real.reset()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class SimScripts(Scripts):
    """The real scripts, with nonces from the seed and the world's time. `told` hears of every call that was carried
    out, in the same step, and what `before` said when it was made.

    planted: faults by script, each texts and what stands in their place.
    """

    def __init__(
        self,
        link: Link,
        prefix: str,
        rng: random.Random,
        told: Told,
        before: Callable[[], set[bool]],
        planted: Mapping[str, Sequence[tuple[str, str]]],
    ) -> None:
        super().__init__(_Telling(link, told, before), prefix, late_ms=LATE_MS)
        self._rng = rng
        self._planted = planted

    def source(self, name: str) -> tuple[str, str]:
        """The text with what was planted in it."""
        known = name in self._sources
        text, sha = super().source(name)
        if not known:
            for old, new in self._planted.get(name, ()):
                assert old in text, f"nothing to plant in {name}.lua"
                text = text.replace(old, new)
            first, rest = text.split("\n", 1)
            text = f"{first}\n{SHIM}\n{rest}"
            sha = str(self._client.load(name, text))
            self._sources[name] = (text, sha)
        return self._sources[name]

    def call(self, name: str, now_ms: int, /, **arguments: Any) -> Any:
        """Run a script."""
        nonce = arguments.pop("nonce", "") or f"{self._rng.getrandbits(48):012x}"
        return super().call(name, now_ms, nonce=nonce, **arguments)


class _Telling:
    """Tells of a script the moment it was carried out, before anybody else runs."""

    def __init__(self, link: Link, told: Told, before: Callable[[], set[bool]]) -> None:
        self._link = link
        self._told = told
        self._before = before
        self._names: dict[str, str] = {}

    def load(self, name: str, text: str) -> str:
        sha = str(self._link.real.script_load(text))
        self._names[sha] = name
        return sha

    def evalsha(self, sha: str, _keys: int, argument: str) -> Any:
        name, before = self._names[sha], self._before()
        if name not in ("claim", "move"):  # which begin a new look at things
            before = set(before)

        def call() -> Any:
            with self._link.spoiled(name, argument):
                answer = self._link.real.evalsha(sha, 0, argument, self._link.clock.now_ms())
            self._told(name, json.loads(argument), answer, before)
            return answer

        return self._link.through("evalsha", call, grows=name not in AT_THE_LIMIT)
