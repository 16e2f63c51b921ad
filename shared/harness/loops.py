"""One client per event loop: a client's sockets belong to the loop that opened them, and every worker thread runs its
own loop."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


class PerLoop(Generic[T]):
    """Makes a client at its first use in a loop and closes it together with that loop.

    The client is held by an async generator of the loop: `asyncio.run` and `asyncio.Runner` end those before they close
    the loop (`loop.shutdown_asyncgens`). Whoever runs a bare loop has to await that method before closing it.
    """

    def __init__(self, make: Callable[[], T], close: Callable[[T], Awaitable[None]]) -> None:
        self._make = make
        self._close = close
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[T, AsyncGenerator[None, None]]]
        self._held = WeakKeyDictionary()
        self._lock = threading.Lock()

    async def get(self) -> T:
        """The running loop's client."""
        loop = asyncio.get_running_loop()
        with self._lock:
            held = self._held.get(loop)
        if held is not None:
            return held[0]
        client = self._make()
        holder = self._hold(loop, client)
        with self._lock:
            self._held[loop] = (client, holder)
        # The first step ends without suspending, so no other task of this loop comes between; it is what makes the loop
        # know the generator.
        await anext(holder)
        return client

    async def _hold(self, loop: asyncio.AbstractEventLoop, client: T) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            with self._lock:
                self._held.pop(loop, None)
            await self._close(client)
