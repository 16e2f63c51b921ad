"""Connections that make others wait: none may take for ever, and when there are too many the slowest give way.

uvicorn bounds neither how long a request's head may take nor how long a client may leave an answer unread, and what it
does at its limit of connections is to refuse whoever has something to say. Here a connection whose client has to go on
first (its request is not complete, or it does not read) is closed after a while, and at the limit the one that has been
so for the longest is closed in favour of the new one. A client that sends its request at once is never among them.
"""

import asyncio
import resource
from collections.abc import Callable
from functools import partial
from typing import Any, Final, cast

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

CONNECTIONS: Final = 1024
"""Connections held at once, idle ones included."""
ACCEPTED_AT_ONCE: Final = 128
"""New connections taken before the others are looked at again: so few that a new one has long been read from before
`CONNECTIONS` later ones could push it out."""
HEAD_S: Final = 10.0
"""A request's head must be here within so many seconds of the connection's beginning or of the answer before it: the
same as for its body (`ingest.app.BODY_S`)."""
REQUEST_S: Final = 20.0
"""From a complete head to an answer that the client has taken: body (10 s), handling (2.5 s), and a slow network."""
HEAD_BYTES: Final = 16_384
"""Largest head that is kept before it is complete. No platform's is larger than 2 KiB; proxies take 8 KiB."""
SPARE_FILES: Final = 512
"""Files beside connections: the connections to Redis and to platforms, logs, the loop's own."""

Waiting = dict["PatientProtocol", None]


class PatientProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 protocol with a deadline for whatever the client has to do next.

    `waiting`: all connections of the server that owe us something, the longest waiting first.
    """

    def __init__(self, *args: Any, waiting: Waiting, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waiting = waiting
        self._deadline: asyncio.TimerHandle | None = None
        self._under_way: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take it; beyond `CONNECTIONS` the one that has been waiting for the longest goes, perhaps this one."""
        super().connection_made(transport)
        self._wait(HEAD_S)
        self._waiting[self] = None
        if len(self.connections) > CONNECTIONS:
            next(iter(self._waiting))._give_up()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._forget()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """The client's turn, unless it has sent the next request already."""
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        """The client does not read its answer."""
        super().pause_writing()
        self._look()

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        self._look()

    def _look(self) -> None:
        """Whose turn is it? A deadline stays while the request is the same: single bytes do not prolong it."""
        if self.transport.is_closing():
            return
        cycle = cast("RequestResponseCycle | None", self.cycle)  # None until the first request
        under_way = None if cycle is None or cycle.response_complete else cycle
        if under_way is not self._under_way:
            self._under_way = under_way
            self._wait(HEAD_S if under_way is None else REQUEST_S)
        if under_way is None or under_way.more_body or self.flow.write_paused:
            self._waiting.setdefault(self, None)
        else:
            self._waiting.pop(self, None)

    def _wait(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        self._forget()
        self.connections.discard(self)  # it counts no more, though the loop tells of its end a little later
        self.transport.abort()

    def _forget(self) -> None:
        self._waiting.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def patient_protocol() -> type[asyncio.Protocol]:
    """The protocol class for one server, as `uvicorn.Config` takes it."""
    made: Callable[..., PatientProtocol] = partial(PatientProtocol, waiting={})
    return cast("type[asyncio.Protocol]", made)


def make_room() -> None:
    """Raise this process's limit of open files, as far as it may, to what `CONNECTIONS` takes: the usual 1024 would be
    used up before the first one gives way."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS + ACCEPTED_AT_ONCE + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
