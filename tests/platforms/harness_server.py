"""A loopback HTTP server that says exactly the bytes it was told to, and counts what reaches its socket."""

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

GIVE_UP_S = 10.0
"""No test of ours waits longer for the other side."""


@dataclass(frozen=True)
class Seen:
    """A request as it came, header names in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    """Bytes to write, one `send` each, and what comes then: close, reset (RST), or hold until the client hangs up."""

    chunks: tuple[bytes, ...] = ()
    then: Literal["close", "reset", "hold"] = "close"


def reply(status: int, body: bytes | Any = b"", kind: str = "application/json", **headers: str) -> Reply:
    """A whole answer. A body that is no bytes is sent as JSON; `_` in a header's name stands for `-`."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Scripted", f"Content-Type: {kind}", f"Content-Length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return Reply(("\r\n".join([*lines, "Connection: close", "", ""]).encode() + data,))


def stream(*chunks: bytes, then: Literal["close", "reset", "hold"] = "close", ended: bool = True) -> Reply:
    """A chunked event stream, each chunk written on its own. `ended`: with the last, empty chunk."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    framed = [b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks if chunk]
    return Reply((head, *framed, *([b"0\r\n\r\n"] if ended else [])), then)


@dataclass
class LoopbackServer:
    """Answers the replies in order; the last one repeats. One request a connection."""

    replies: Sequence[Reply]
    requests: list[Seen] = field(default_factory=list)
    connections: int = 0
    hang_ups: int = 0

    def __post_init__(self) -> None:
        self._changed = threading.Condition()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/turns"
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def wait_for_requests(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.requests) >= count, GIVE_UP_S)

    def wait_for_hang_up(self) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.hang_ups > 0, GIVE_UP_S)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join(GIVE_UP_S)
        with self._changed:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(GIVE_UP_S)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._changed:
                self.connections += 1
                self._open.add(connection)
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(GIVE_UP_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self._exchange(connection)
        except OSError:
            self._hung_up()
        finally:
            with self._changed:
                self._open.discard(connection)
            connection.close()

    def _hung_up(self) -> None:
        with self._changed:
            self.hang_ups += 1
            self._changed.notify_all()

    def _exchange(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as reader:
            seen = _read_request(reader)
            if seen is None:
                return
            with self._changed:
                self.requests.append(seen)
                planned = self.replies[min(len(self.requests), len(self.replies)) - 1]
                self._changed.notify_all()
            for chunk in planned.chunks:
                connection.sendall(chunk)
            if planned.then == "hold" and reader.read(1) == b"":
                self._hung_up()
        if planned.then == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _read_request(reader: Any) -> Seen | None:
    first = reader.readline().decode("ascii").split()
    if len(first) != 3:
        return None
    headers: dict[str, str] = {}
    while line := reader.readline().decode("latin-1").strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = reader.read(int(headers.get("content-length", "0")))
    return Seen(first[0], first[1], headers, body)


@contextlib.contextmanager
def serving(*replies: Reply) -> Generator[LoopbackServer]:
    """A server for the length of a test."""
    server = LoopbackServer(replies)
    try:
        yield server
    finally:
        server.close()


def refused_url() -> str:
    """An address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}/turns"


class SteppedClock:
    """A clock that stands still but for its sleeps, which take no time and are written down."""

    def __init__(self, now_ms: int = 1_788_280_000_000) -> None:
        self._now_ms = now_ms
        self.slept: list[float] = []

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return self._now_ms / 1000

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._now_ms += int(seconds * 1000)

    async def wait_for(self, work: Any, seconds: float) -> Any:
        return await work
