"""The clock of one simulated process: the server's time as it has it, which is never quite the server's time."""

from collections.abc import Awaitable
from typing import TypeVar

from workers.ops.scenario.clock import ScenarioClock

T = TypeVar("T")


class SkewedClock:
    """A `Clock` whose time is off by `offset_ms` at first and by `drift_ms` more with each second, never by more than
    `most_ms` either way; it never goes back, and its monotonic seconds are right."""

    def __init__(self, real: ScenarioClock, offset_ms: int, drift_ms: float, most_ms: int) -> None:
        self._real = real
        self._offset_ms = offset_ms
        self._drift_ms = drift_ms
        self._most_ms = most_ms
        self._since_s = real.monotonic()
        self._last_ms = 0

    def now_ms(self) -> int:
        """Unix ms, as this process has it."""
        off_ms = self._offset_ms + self._drift_ms * (self._real.monotonic() - self._since_s)
        off_ms = max(-self._most_ms, min(self._most_ms, off_ms))
        self._last_ms = max(self._last_ms, self._real.now_ms() + int(off_ms))
        return self._last_ms

    def monotonic(self) -> float:
        """Seconds since some moment."""
        return self._real.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait until the world's clock gets there."""
        await self._real.sleep(seconds)

    async def wait_for(self, work: Awaitable[T], seconds: float) -> T:
        """Await `work` for at most `seconds` of the world; raises TimeoutError."""
        return await self._real.wait_for(work, seconds)
