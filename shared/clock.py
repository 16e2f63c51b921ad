"""One clock for every process: Redis `TIME`, sampled, carried by the monotonic clock.

Policies and scripts never ask for the time: they get `now_ms` as an argument. Waiting goes through the clock too, so
that a scenario can run two hours in milliseconds.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

T = TypeVar("T")

SAMPLE_EVERY_S = 10.0
"""How long one sample of the server's time is carried; crystals drift by less than 1 ms in it."""


class Clock(Protocol):
    """Time as every part of Millstream sees it."""

    def now_ms(self) -> int:
        """Unix time in integer milliseconds, the server's."""
        ...

    def monotonic(self) -> float:
        """Seconds that never jump; only differences mean anything."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`."""
        ...

    async def wait_for(self, work: Awaitable[T], seconds: float) -> T:
        """Await `work` for at most `seconds`; raises TimeoutError and cancels it beyond that."""
        ...


class ServerClock:
    """The clock of a process: `time_ms` asks the server (`TIME`), the monotonic clock carries the answer.

    When the server does not answer, the last sample is carried on: a host's own clock is never consulted twice, so a
    host whose clock jumps harms nothing.
    """

    def __init__(self, time_ms: Callable[[], int]) -> None:
        self._time_ms = time_ms
        self._sample = (time.monotonic(), time_ms())

    def now_ms(self) -> int:
        """Unix time in integer milliseconds, the server's."""
        at, sample = self._sample  # one value: several threads look at it
        carried = time.monotonic() - at
        if carried > SAMPLE_EVERY_S:
            try:
                self._sample = (time.monotonic(), max(self._time_ms(), sample))
            except (OSError, ConnectionError, TimeoutError):
                return sample + int(carried * 1000)
            return self._sample[1]
        return sample + int(carried * 1000)

    def monotonic(self) -> float:
        """Seconds of the host's monotonic clock."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds` of real time."""
        await asyncio.sleep(seconds)

    async def wait_for(self, work: Awaitable[T], seconds: float) -> T:
        """Await `work` for at most `seconds` of real time; raises TimeoutError."""
        async with asyncio.timeout(seconds):  # in Python 3.11 `wait_for` makes a task of its own for each call
            return await work
