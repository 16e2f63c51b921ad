"""The way to the server, with its faults: a call never happens, comes twice, or its answer is lost."""

import json
import random
from collections.abc import Callable, Mapping
from typing import Any, Final

from redis import exceptions as redis_errors

from shared.redis.client import Redis
from shared.redis.scripts import Scripts
from tests.simulation.strands import Crew

REPEATABLE: Final = frozenset({"evalsha", "eval", "get", "set", "hgetall", "hget", "hset", "zrem", "zscore", "lrange"})
"""Commands that redis-py may send a second time, as it does with every command whose answer was lost."""

Told = Callable[[str, dict[str, Any], Any], None]


class Link:
    """A client for the strands: every call is a point where another strand may go first, and may fail.

    share: of all calls that fail in one of the three ways. next_fault: of the driver's own next call, which nobody can
    get ahead of. real: the client itself, for what is no call of the pipeline.
    """

    def __init__(self, real: Redis, crew: Crew, rng: random.Random, note: Callable[[str], None]) -> None:
        self.share = 0.0
        self.next_fault = ""
        self.real = real
        self._crew = crew
        self._rng = rng
        self._note = note

    def pipeline(self, *args: Any, **kwargs: Any) -> "_Pipeline":
        """A pipeline: one call, when it is executed."""
        return _Pipeline(self, self.real.pipeline(*args, **kwargs))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self.real, name)
        return lambda *args, **kwargs: self.through(name, lambda: call(*args, **kwargs))

    def through(self, name: str, call: Callable[[], Any]) -> Any:
        """Carry out one call. Raises redis errors where the seed says so, WorkerDied when the caller is dead."""
        strand = self._crew.current
        fault, self.next_fault = self.next_fault, ""
        if strand is not None:
            strand.pause()
        if strand is not None and self.share and self._rng.random() < self.share:
            fault = self._rng.choice(("never", "lost", "twice", "twice"))
            self._note(f"{name} {fault}")
        if fault == "never":
            raise redis_errors.ConnectionError("never happened (simulated)")
        answer = call()
        if fault == "twice" and name in REPEATABLE:
            if strand is not None:
                strand.pause()
            answer = call()
        if fault == "lost":
            raise redis_errors.TimeoutError("its answer was lost (simulated)")
        return answer


class _Pipeline:
    def __init__(self, link: Link, real: Any) -> None:
        self._link = link
        self._real = real

    def execute(self) -> Any:
        return self._link.through("pipeline", self._real.execute)

    def __enter__(self) -> "_Pipeline":
        return self

    def __exit__(self, *_: object) -> None:
        self._real.reset()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class SimScripts(Scripts):
    """The real scripts, with nonces from the seed. `told` hears of every call that was answered, in the same step.

    planted: faults by script, each a text and what stands in its place.
    """

    def __init__(
        self,
        link: Any,
        prefix: str,
        rng: random.Random,
        told: Told,
        planted: Mapping[str, tuple[str, str]],
    ) -> None:
        super().__init__(_Telling(link, told), prefix, late_ms=0)
        self._rng = rng
        self._planted = planted

    def source(self, name: str) -> tuple[str, str]:
        """The text with what was planted in it."""
        known = name in self._sources
        text, sha = super().source(name)
        if not known:
            if name in self._planted:
                old, new = self._planted[name]
                assert old in text, f"nothing to plant in {name}.lua"
                text = text.replace(old, new)
                sha = ""
            sha = str(self._client.load(name, text))
            self._sources[name] = (text, sha)
        return self._sources[name]

    def call(self, name: str, now_ms: int, /, **arguments: Any) -> Any:
        """Run a script."""
        nonce = arguments.pop("nonce", "") or f"{self._rng.getrandbits(48):012x}"
        return super().call(name, now_ms, nonce=nonce, **arguments)


class _Telling:
    """Tells of a script the moment it was carried out, before anybody else runs."""

    def __init__(self, link: Any, told: Told) -> None:
        self._link = link
        self._told = told
        self._names: dict[str, str] = {}

    def load(self, name: str, text: str) -> str:
        sha = str(self._link.real.script_load(text))
        self._names[sha] = name
        return sha

    def evalsha(self, sha: str, _keys: int, argument: str) -> Any:
        def call() -> Any:
            answer = self._link.real.evalsha(sha, 0, argument)
            self._told(self._names[sha], json.loads(argument), answer)
            return answer

        return self._link.through("evalsha", call)
