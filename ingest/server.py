"""Running the edge: uvicorn for the webhooks, and beside it whatever runs as long (connectors)."""

import asyncio
import signal
import socket
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol, TypeAlias

import uvicorn
from starlette.types import ASGIApp

from ingest.connections import ACCEPTED_AT_ONCE, CONNECTIONS, HEAD_BYTES, make_room, patient_protocol
from shared.logging import logger

GRACE_S: Final = 10
"""After TERM: requests under way are answered within so many seconds; the service's grace period is 30 (operations.md,
Shutdown)."""

Beside: TypeAlias = Callable[[asyncio.Event], Coroutine[Any, Any, None]]
"""Something that runs until the event is set, and then ends by itself within `GRACE_S`."""

_CAUGHT: Final = (signal.SIGTERM, signal.SIGINT)
_log = logger("ingest")


class Where(Protocol):
    """`settings.ingest`."""

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers (TERM ends the connectors too, so it is caught below), and with a word when
    it takes connections."""

    def __init__(self, config: uvicorn.Config, listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._listening = listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._listening()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


async def serve(
    app: ASGIApp,
    where: Where,
    beside: Sequence[Beside] = (),
    stop: asyncio.Event | None = None,
    listening: Callable[[int], None] | None = None,
) -> None:
    """Serve `app` until TERM, INT or `stop`; then take nothing new, finish what is under way, and return.

    `listening` is called with the port once connections are taken. A second signal ends what is under way at once:
    nothing is lost by it, since what was not acknowledged comes again. Raises OSError when the port is taken,
    and an ExceptionGroup when one of `beside` fails.
    """
    stopping = stop or asyncio.Event()
    make_room()
    config = uvicorn.Config(
        app,
        host=where.host,
        port=where.port,
        http=patient_protocol(),
        h11_max_incomplete_event_size=HEAD_BYTES,
        ws="none",
        backlog=ACCEPTED_AT_ONCE,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    # Bound here, since uvicorn ends the whole process when it cannot bind.
    sock = await asyncio.to_thread(_bind, where)
    port: int = sock.getsockname()[1]

    def started() -> None:
        sock.listen(CONNECTIONS)  # the loop takes few at once, but the system's queue may be long
        _log.info("ingest_listening", host=where.host, port=port)
        if listening is not None:
            listening(port)

    server = _Server(config, started)
    loop = asyncio.get_running_loop()

    def ask_to_stop() -> None:
        server.force_exit = stopping.is_set()
        stopping.set()

    async def pass_on() -> None:
        await stopping.wait()
        server.should_exit = True

    for name in _CAUGHT:
        loop.add_signal_handler(name, ask_to_stop)
    try:
        async with asyncio.TaskGroup() as group:
            passing = group.create_task(pass_on())
            running = [group.create_task(run(stopping)) for run in beside]
            await server.serve([sock])
            passing.cancel()
            stopping.set()
            if running:
                _, late = await asyncio.wait(running, timeout=GRACE_S)
                for task in late:
                    task.cancel()
    finally:
        sock.close()
        for name in _CAUGHT:
            loop.remove_signal_handler(name)
    _log.info("ingest_stopped")


def _bind(where: Where) -> socket.socket:
    found = socket.getaddrinfo(where.host, where.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = found[0]
    sock = socket.socket(family, kind, protocol)
    try:
        # A restarted process takes the port at once, although connections of the former one linger.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
    except OSError:
        sock.close()
        raise
    return sock
