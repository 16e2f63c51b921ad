"""Thousands of connections that hang, each in the same way, and what a process holds meanwhile."""

import resource
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

HEAD = b"POST /hooks/demo HTTP/1.1\r\nhost: 127.0.0.1\r\n"
MANY_ANSWERS = b"GET /metrics HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n" * 100

WAYS: dict[str, bytes] = {
    "says nothing": b"",
    "half a head": HEAD + b"content-length: 9",
    "half a head of 15 KB": HEAD + b"x-filler: " + b"x" * 15_000,
    "half a body": HEAD + b"content-length: 900000\r\n\r\n{",
    "half a body of 60 KB": HEAD + b"content-length: 900000\r\n\r\n" + b" " * 60_000,
    "half closed": HEAD,
    "reads no answer": MANY_ANSWERS,
}
"""What a hanging client sends before it hangs."""

SPARE = 500
"""Files that the test process itself needs."""


def allowed(wanted: int) -> int:
    """How many connections this process may hold, at most `wanted`: its limit of open files is raised as far as it
    goes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted + SPARE if hard == resource.RLIM_INFINITY else min(wanted + SPARE, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    return wanted if soft == resource.RLIM_INFINITY else min(wanted, soft - SPARE)


def rss_kb(pid: int) -> int:
    """Resident memory of a process, KiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


def open_files(pid: int) -> int:
    """Open files of a process, sockets included."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def hang(port: int, way: str) -> socket.socket:
    """One client that sends its part and then hangs. A reset while it does so is its own affair."""
    client = socket.socket()
    client.settimeout(10)
    if way == "reads no answer":
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with suppress(ConnectionError):
        client.connect(("127.0.0.1", port))
        client.setblocking(False)
        with suppress(BlockingIOError):
            client.send(WAYS[way])
        if way == "half closed":
            client.shutdown(socket.SHUT_WR)
    return client


@contextmanager
def crowd(port: int, way: str, size: int) -> Generator[list[socket.socket]]:
    """`size` clients that hang together; all are gone afterwards."""
    clients: list[socket.socket] = []
    try:
        clients.extend(hang(port, way) for _ in range(size))
        yield clients
    finally:
        for client in clients:
            client.close()


def ended(client: socket.socket) -> bool:
    """Whether the server has closed a client's connection; what it answered is read and dropped."""
    try:
        while client.recv(65_536):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def honest(port: int, body: bytes) -> tuple[int, float]:
    """Status and seconds of one webhook on a connection of its own."""
    started = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(HEAD + b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        answer = b""
        while piece := client.recv(4096):
            answer += piece
    return int(answer.split()[1]), time.monotonic() - started
