"""The elected housekeeper: due retries, timers, claims that ran out, lost wake-ups, pauses, retention, gauges.

Two may run: one holds the lease, the other watches it by the same rule as every other lease. Everything it does is a
move like any other; a keeper that is slow makes waits longer and nothing else.
"""

from collections.abc import Callable

import structlog
from redis import exceptions as redis_errors

from shared import metrics
from workers.context import Context
from workers.deadletters import store
from workers.keeper import effects, facts
from workers.keeper.policy import Sight, watch
from workers.moves import lanes, slots

log = structlog.get_logger()

LIMIT = 256
"""Ids that one script moves at most (design, section 3)."""
TICK_S = 0.25
"""Seconds between two looks at what is due."""
SLOW_S = 60.0
"""Seconds between two rounds of retention."""


class Keeper:
    """One candidate. `tick` is called every `TICK_S`; `elected` says whether it keeps.

    scan: look slowly at all records, and set the gauges. eager: every tick does everything, however soon it comes.
    """

    def __init__(self, ctx: Context, *, scan: bool = True, eager: bool = False) -> None:
        self._ctx = ctx
        self._token = ctx.token()
        self._sights: dict[str, Sight] = {}
        self._cursor = 0
        self._scan = scan
        self._eager = eager
        self._last: dict[str, float] = {}
        self.elected = False

    def tick(self) -> int:
        """Do what is due now, if this is the keeper. Returns how many ids it moved."""
        ctx = self._ctx
        now = ctx.clock.monotonic()
        held: dict[str, str] = ctx.client.hgetall(ctx.keys.held)
        pipeline = ctx.settings.pipeline
        self._sights, silent = watch(self._sights, held, now, pipeline.claim_s, pipeline.lease_s)
        self.elected = held.get("keeper", "").split("|", 1)[0] == self._token or self._elect(held, silent)
        if not self.elected:
            return 0
        moved = self._fire()
        for name in silent:
            if name != "keeper":
                self._take_over(name, held[name])
                moved += 1
        moved += self._every("reconcile", pipeline.reconcile_s, self._reconcile)
        moved += self._every("open", 1.0, self._open)
        self._every("retention", SLOW_S, self._retention)
        if self._scan:
            self._every("scan", 1.0, self._scan_once)
            self._every("gauges", 5.0, self._gauges)
        return moved

    def lease(self) -> tuple[str, str]:
        """Name and token of the keeper's lease, for the beat."""
        return "keeper", self._token

    def _elect(self, held: dict[str, str], silent: list[str]) -> bool:
        ctx = self._ctx
        if "keeper" in silent:
            ctx.scripts.call("takeover", ctx.now_ms(), name="keeper", seen=held["keeper"], token=self._token)
            # Another candidate may have been faster, or the holder may have come back: then nothing was taken over.
            return str(ctx.client.hget(ctx.keys.held, "keeper")).split("|", 1)[0] == self._token
        return "keeper" not in held and ctx.scripts.call("hold", ctx.now_ms(), name="keeper", token=self._token) == 1

    def _take_over(self, name: str, value: str) -> None:
        try:
            effects.take_over(self._ctx, name, value)
        except (redis_errors.RedisError, OSError):
            raise
        except Exception as error:
            # What cannot be decided runs out again and is counted again; it must not end the housekeeping of all.
            log.error("takeover_failed", claim=name, error=type(error).__name__, exc_info=error)

    def _every(self, what: str, seconds: float, work: Callable[[], int]) -> int:
        now = self._ctx.clock.monotonic()
        if not self._eager and now - self._last.get(what, float("-inf")) < seconds:
            return 0
        self._last[what] = now
        return work()

    def _fire(self) -> int:
        ctx, total = self._ctx, 0
        while True:
            moved = int(ctx.scripts.call("fire", ctx.now_ms(), limit=LIMIT, **lanes(ctx.settings))[0])
            total += moved
            if moved < LIMIT:
                return total

    def _reconcile(self) -> int:
        ctx = self._ctx
        pipeline = ctx.settings.pipeline
        reply = ctx.scripts.call(
            "repush",
            ctx.now_ms(),
            partitions=pipeline.partitions,
            harnesses=list(slots(ctx.settings)),
            wait_ms=int(pipeline.reconcile_s * 1000),
            limit=LIMIT,
            slots=slots(ctx.settings),
        )
        total = 0
        for stage, n in zip(reply[::2], reply[1::2], strict=True):
            if n:
                metrics.reconciled.labels(stage).inc(n)
                log.info("reconciled", stage=stage, count=n)
            total += n
        return total

    def _open(self) -> int:
        ctx = self._ctx
        if ctx.switches.read().paused:
            return 0
        return int(ctx.scripts.call("open", ctx.now_ms(), why="pause", limit=LIMIT, slots=slots(ctx.settings)))

    def _retention(self) -> int:
        return store.trim(self._ctx)

    def _gauges(self) -> int:
        facts.gauges(self._ctx)
        return 0

    def _scan_once(self) -> int:
        """Look at some records: one that stands in no place goes back to the one it names."""
        ctx, mended = self._ctx, 0
        self._cursor, keys = ctx.client.scan(self._cursor, match=ctx.keys.record("*"), count=LIMIT)
        prefix = len(ctx.keys.record(""))
        for key in keys:
            mended += int(ctx.scripts.call("restore", ctx.now_ms(), id=key[prefix:], **lanes(ctx.settings)))
        if mended:
            log.warning("records_restored", count=mended)
        return mended
