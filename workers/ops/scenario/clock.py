"""The scenario's clock and event loop: time passes only when the driver says so."""

import asyncio
import heapq
from collections.abc import Awaitable
from itertools import count
from typing import TypeVar

T = TypeVar("T")


class ScenarioLoop(asyncio.SelectorEventLoop):
    """An event loop that can say whether anything in it could run without time passing."""

    def idle(self) -> bool:
        """True when every task waits for the scenario's clock."""
        return not self._ready  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]


class ScenarioClock:
    """A `Clock` whose time is set. Sleepers are woken in the order of their times."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._serial = count()

    def now_ms(self) -> int:
        """Unix ms of the scenario."""
        return self._now_ms

    def monotonic(self) -> float:
        """The same in seconds."""
        return self._now_ms / 1000

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock gets there."""
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now_ms + round(seconds * 1000), next(self._serial), future))
        await future

    async def wait_for(self, work: Awaitable[T], seconds: float) -> T:
        """Await `work` for at most `seconds` of the scenario; raises TimeoutError."""
        task = asyncio.ensure_future(work)
        alarm = asyncio.ensure_future(self.sleep(seconds))
        try:
            await asyncio.wait({task, alarm}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            task.cancel()
            raise TimeoutError
        except asyncio.CancelledError:
            task.cancel()
            raise
        finally:
            alarm.cancel()

    def next_ms(self) -> int | None:
        """When the next sleeper wakes, or None."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    def set(self, now_ms: int) -> None:
        """Let time pass to `now_ms` and wake who slept until then."""
        self._now_ms = max(self._now_ms, now_ms)
        while self._sleepers and self._sleepers[0][0] <= self._now_ms:
            _, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                future.set_result(None)
