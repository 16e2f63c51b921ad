"""Claims and leases of this process: held with a random token, renewed every second, compared for equality.

Renewal stops at the stage's time limit, so that a hung worker lets go; a holder that could not renew for two thirds of
the length cancels its own work; a turn that /stop marked is told so within a second.
"""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from redis import exceptions as redis_errors

from shared.clock import Clock
from shared.redis.client import Redis
from shared.redis.scripts import Scripts

Interrupt: TypeAlias = Literal["", "lost", "stop", "drain"]
_MEANING: dict[str, Interrupt] = {"ok": "", "lost": "lost", "cancel": "stop"}

BEAT_S = 1.0
"""Seconds between two renewals (design, section 3)."""


@dataclass(slots=True)
class Hold:
    """One claim or lease. `interrupt` says why its work must end: lost (to somebody else, or not renewed for two thirds
    of its length), stop (the asker's wish), drain (this process ends). `on_change` runs in the teller's thread."""

    name: str
    token: str
    length_s: float
    until: float
    renewed: float
    ids: str = ""
    interrupt: Interrupt = ""
    on_change: Callable[[], object] | None = field(default=None)

    @property
    def lost(self) -> bool:
        """True when nothing may be applied under it any more."""
        return self.interrupt == "lost"

    def lapse(self, now: float) -> bool:
        """Whether it is lost at `now` (monotonic seconds), as who was frozen must ask before every effect: the keeper
        may have given the work to somebody else, and no beat has told yet."""
        if now - self.renewed > self.length_s * 2 / 3:
            self.tell("lost")
        return self.lost

    def tell(self, interrupt: Interrupt) -> None:
        """Tell the holder; `lost` beats what was said before."""
        if not interrupt or self.lost or self.interrupt == interrupt:
            return
        self.interrupt = interrupt
        if self.on_change is not None:
            self.on_change()


LEAN_SHARE = 0.8
"""Share of the server's memory limit beyond which decisions and logs stop (design, section 3, Retention)."""


class ServerWatch:
    """Notices that the server restarted or failed over: it may have lost its last second (design, Rollback).

    `quiet` is true for `quiet_s` after that: no effect may start, while holders write their claims again. Who noticed
    it writes it down under `key`, with the time, so that a process that starts meanwhile is quiet as well.
    """

    def __init__(self, client: Redis, clock: Clock, quiet_s: float, key: str = "") -> None:
        self._client = client
        self._clock = clock
        self._quiet_s = quiet_s
        self._key = key
        self._lean = False
        self._sure = True
        self._seen = self._identity()
        self._until = clock.monotonic() + self._remaining_s(self._seen) if key else float("-inf")

    def _identity(self) -> str:
        try:
            info: dict[str, Any] = self._client.info()
        except redis_errors.ResponseError:
            return ""  # fakeredis, the demo's last resort, knows no INFO and keeps nothing either
        limit = int(info.get("maxmemory", 0))
        self._lean = bool(limit) and int(info["used_memory"]) > limit * LEAN_SHARE
        return f"{info.get('run_id')}/{info.get('master_replid')}"

    def _remaining_s(self, identity: str) -> float:
        """How long it is still quiet, by what is written down; what is new is written down."""
        now_ms = self._clock.now_ms()
        known, _, since = str(self._client.get(self._key) or "").partition("|")
        if known == identity:
            return self._quiet_s - (now_ms - int(since)) / 1000
        self._client.set(self._key, f"{identity}|{now_ms if known else 0}")
        return self._quiet_s if known else 0.0

    def changed(self) -> bool:
        """Ask; True from a change until the quiet time is over. Raises redis errors."""
        now = self._clock.monotonic()
        try:
            identity = self._identity()
            if identity != self._seen:
                if self._key:
                    self._remaining_s(identity)
                self._seen, self._until = identity, now + self._quiet_s
        except (redis_errors.RedisError, OSError):
            self._sure = False
            raise
        self._sure = True
        return now < self._until

    def quiet(self) -> bool:
        """True while no effect may start: after a change, and as long as the server could not be asked."""
        return not self._sure or self._clock.monotonic() < self._until

    def lean(self) -> bool:
        """True while the server's memory is so full that decisions and logs are not kept."""
        return self._lean


class Beats:
    """All holds of a process. `tick` renews them once; `start` does so every second in a thread."""

    def __init__(self, scripts: Scripts, clock: Clock, server: "ServerWatch") -> None:
        self._scripts = scripts
        self._server = server
        self._clock = clock
        self._holds: dict[str, Hold] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def holding(self, name: str, token: str, length_s: float, limit_s: float, ids: str = "") -> Generator[Hold]:
        """Renew `name` while the block runs, for at most `limit_s` seconds. `ids`: what it names to the keeper."""
        now = self._clock.monotonic()
        hold = Hold(name, token, length_s, now + limit_s, now, ids)
        with self._lock:
            self._holds[token] = hold
        try:
            yield hold
        finally:
            with self._lock:
                self._holds.pop(token, None)

    def held(self) -> list[Hold]:
        """The holds of this moment."""
        with self._lock:
            return list(self._holds.values())

    def tick(self) -> None:
        """Renew every hold once and tell each what came of it."""
        now = self._clock.monotonic()
        holds = [h for h in self.held() if not h.lost]
        renewing = [h for h in holds if now < h.until]
        replies: list[Any] = []
        try:
            anew = self._server.changed()
            if anew:  # who was silent too long may have been taken over, and must not write its claim again
                renewing = [h for h in renewing if not h.lapse(now)]
            names = [[h.name, h.token, h.ids] for h in renewing]
            if names:
                replies = self._scripts.call("renew", self._clock.now_ms(), held=names, **{"assert": anew})
        except (redis_errors.RedisError, OSError):
            replies = []
        for hold, reply in zip(renewing, replies, strict=False):
            if reply != "lost":
                hold.renewed = now
            hold.tell(_MEANING[reply])
        for hold in holds:
            hold.lapse(now)

    def start(self) -> None:
        """Beat every second until `stop`."""
        self._thread = threading.Thread(target=self._run, name="beats", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(BEAT_S):
            self.tick()

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
