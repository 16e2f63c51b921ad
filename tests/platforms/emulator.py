"""What the emulated platforms share: a loopback HTTP server that checks what Millstream sends, writes it down, fails
when told to, and can be steered over HTTP by another process.

Steering (`/_control/...`): POST fail {method, kind, times, ...}, POST push {event}, GET seen, GET refusals.
"""

import argparse
import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

GIVE_UP_S = 20.0
"""No test waits longer for the other side."""


@dataclass(frozen=True)
class Asked:
    """A request as it came, header names in lower case."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        """The body as an object. Raises Refuse when it is none."""
        try:
            found = json.loads(self.body)
        except ValueError as error:
            raise Refuse(400, "the body is no JSON") from error
        if not isinstance(found, dict):
            raise Refuse(400, "the body is no object")
        return found


@dataclass(frozen=True)
class Answer:
    """What to write back. A `bytes` body goes as it is, anything else as JSON."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


class Refuse(Exception):
    """What a platform says to a request that breaks its rules; also noted in `refusals`."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass
class Failure:
    """What the next calls of `method` meet, `times` times.

    timeout: taken, never answered. reset: taken, then RST. refuse: not taken, answered with `status`, `body`,
    `headers`. broken: taken, answered with `status` and `body` instead of what is right.
    """

    method: str
    kind: Literal["timeout", "reset", "refuse", "broken"]
    times: int = 1
    status: int = 500
    body: Any = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


class Emulator:
    """A platform on 127.0.0.1. `seen`: what was taken, in order: {method, body}. `refusals`: what was wrong.

    A subclass answers `handle(asked)`; it may raise Refuse.
    """

    def __init__(self, port: int = 0, log: Path | None = None) -> None:
        self.seen: list[dict[str, Any]] = []
        self.refusals: list[str] = []
        self.requests = 0
        self.changed = threading.Condition()
        self.closing = threading.Event()
        self._failures: list[Failure] = []
        self._log = log
        self._server = _Server(("127.0.0.1", port), _handler(self))
        self.port: int = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def handle(self, asked: Asked) -> Answer:
        """The platform's answer to a request."""
        raise Refuse(404, f"no such method: {asked.path}")

    def push(self, event: dict[str, Any]) -> None:
        """An event for whoever polls; platforms without a poll have none."""
        raise Refuse(404, "nothing polls here")

    def refusal(self, status: int, text: str) -> Answer:
        """The platform's shape of a refusal."""
        return Answer(status, {"error": text})

    def fail(self, method: str, kind: Literal["timeout", "reset", "refuse", "broken"], **more: Any) -> None:
        """Let the next call of `method` fail: see Failure."""
        with self.changed:
            self._failures.append(Failure(method, kind, **more))

    def note(self, method: str, body: Any) -> None:
        """Write down what was taken."""
        with self.changed:
            self.seen.append({"method": method, "body": body})
            if self._log is not None:
                with self._log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(self.seen[-1], ensure_ascii=False) + "\n")
            self.changed.notify_all()

    def sent(self, method: str) -> list[Any]:
        """The bodies taken by `method`, in order."""
        with self.changed:
            return [each["body"] for each in self.seen if each["method"] == method]

    def wait_for(self, holds: Callable[[], bool], timeout_s: float = GIVE_UP_S) -> None:
        """Wait until `holds()`, looked at after everything that happens here. Fails beyond `timeout_s`."""
        with self.changed:
            assert self.changed.wait_for(holds, timeout_s), "the platform waited in vain"

    def failure_of(self, method: str) -> Failure | None:
        """The failure that this call of `method` meets, used up by one."""
        with self.changed:
            for failure in self._failures:
                if failure.method == method and failure.times > 0:
                    failure.times -= 1
                    return failure
        return None

    def answer(self, asked: Asked) -> Answer | Failure:
        """Everything between a request and its answer."""
        with self.changed:
            self.requests += 1
        try:
            if asked.path.startswith("/_control/"):
                return self._control(asked)
            failure = self.failure_of(asked.path.rsplit("/", 1)[-1])
            if failure is not None and failure.kind == "refuse":
                return Answer(failure.status, failure.body, failure.headers)
            right = self.handle(asked)
            if failure is not None and failure.kind == "broken":
                return Answer(failure.status, failure.body, failure.headers)
            return failure or right
        except Refuse as refuse:
            with self.changed:
                self.refusals.append(str(refuse))
                self.changed.notify_all()
            return self.refusal(refuse.status, str(refuse))

    def _control(self, asked: Asked) -> Answer:
        match asked.path.removeprefix("/_control/"):
            case "fail":
                self.fail(**asked.json())
            case "push":
                self.push(asked.json())
            case "seen":
                with self.changed:
                    return Answer(body=list(self.seen))
            case "refusals":
                with self.changed:
                    return Answer(body=list(self.refusals))
            case other:
                raise Refuse(404, f"no such control: {other}")
        return Answer()

    def close(self) -> None:
        """Hang up and end every thread."""
        self.closing.set()
        with self.changed:
            self.changed.notify_all()
        self._server.shutdown()
        self._thread.join(GIVE_UP_S)
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        with self._lock:
            for request in self._open:
                with contextlib.suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)
        super().server_close()


def _handler(emulator: Emulator) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: Any) -> None:
            """Quiet."""

        def do_GET(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def _serve(self) -> None:
            split = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, unquote(split.path), dict(parse_qsl(split.query)), headers, body)
            answer = emulator.answer(asked)
            with contextlib.suppress(OSError):
                if isinstance(answer, Failure):
                    self._break(answer)
                else:
                    self._write(answer)

        def _break(self, failure: Failure) -> None:
            self.close_connection = True
            if failure.kind == "reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                return
            self.connection.settimeout(None)
            self.connection.recv(1)  # until the other side hangs up, or this server closes

        def _write(self, answer: Answer) -> None:
            data = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            kind = "application/octet-stream" if isinstance(answer.body, bytes) else "application/json"
            for name, value in ({"Content-Type": kind} | answer.headers).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler


def post(url: str, body: bytes, headers: dict[str, str]) -> int:
    """A platform's webhook request; returns the status."""
    split = urlsplit(url)
    connection = HTTPConnection(split.hostname or "", split.port, timeout=GIVE_UP_S)
    with contextlib.closing(connection):
        path = split.path + (f"?{split.query}" if split.query else "")
        connection.request("POST", path, body, {"content-type": "application/json"} | headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status


AnyEmulator = TypeVar("AnyEmulator", bound=Emulator)


@contextlib.contextmanager
def running(emulator: AnyEmulator) -> Iterator[AnyEmulator]:
    """The emulator for the length of a test."""
    try:
        yield emulator
    finally:
        emulator.close()


def main(make: Callable[[int, Path | None], Emulator]) -> None:
    """`--port N --log FILE`: serve until standard input ends or a signal comes; the address is printed first."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", type=Path)
    arguments = parser.parse_args()
    emulator = make(arguments.port, arguments.log)
    try:
        print(emulator.url, flush=True)
        threading.Event().wait()
    except KeyboardInterrupt:
        pass
    finally:
        emulator.close()
