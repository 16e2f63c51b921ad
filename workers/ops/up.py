"""`millstream up`: everything on this machine, as processes of this one, ended together."""

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import httpx
from redis import exceptions as redis_errors

from shared.channels import BUILT
from shared.outcome import STAGES
from shared.process import build
from shared.redis.client import connect
from shared.redis.embedded import Embedded
from shared.redis.keys import Keys
from shared.settings import Settings
from workers.ops import checks
from workers.ops.children import Child, end_all, watch
from workers.ops.output import MISUSED, complain, fail, say
from workers.ops.session import at_server, folder_of, server_file

READY_S: Final = 60.0
"""How long ingest may take until it answers: a small machine starts nine interpreters at once."""
LOOK_S: Final = 0.2
"""Between two looks at the processes."""
MARGIN_S: Final = 30.0
"""Dispatch's grace beyond its harness's `timeout_s` (operations.md, Shutdown)."""


def run_up(settings: Settings, config: Path | None, *, compact: bool = False) -> int:
    """Run until TERM or INT; returns the exit code. Raises Failed, EmbeddedError and what `build` raises."""
    _refuse_errors(settings)
    _refuse_taken_port(settings)
    stop, signals = threading.Event(), list[int]()

    def asked_to_end(number: int, _frame: object) -> None:
        signals.append(number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, asked_to_end)
    with ExitStack() as ending:
        if not settings.redis.url:
            settings = at_server(settings, _own_server(config, ending))
            ending.callback(_forget_run, settings)
        # Whatever the server refuses (a number of partitions, a password) is told once, not by nine processes.
        build(settings).client.close()
        groups = children_of(settings, config, compact=compact)
        for group in reversed(groups):
            ending.callback(_end, group, lambda: len(signals) > 1)
        flat = [child for group in groups for child in group]
        for child in reversed(flat):
            child.start()
        if _await_ingest(settings, flat[0], stop):
            _welcome(settings)
        while not stop.wait(LOOK_S):
            watch(flat, _tell)
        say("ending: ingest, workers, keeper" + ("" if len(groups) < 2 else ", then the server"))
    return 0


def children_of(
    settings: Settings, config: Path | None, *, compact: bool = False, log: int | None = None
) -> list[list[Child]]:
    """The processes in the order in which they end: ingest, then the workers, then the keeper."""
    common = ("--config", str(config)) if config is not None else ()
    port = settings.metrics.port
    longest_s = max(h.timeout_s for h in (settings.harness, *settings.harnesses.values()))

    def child(name: str, *args: str, grace_s: float = MARGIN_S) -> Child:
        nonlocal port
        environment = {"MILLSTREAM_REDIS__URL": settings.redis.url, "MILLSTREAM_METRICS__PORT": str(port)}
        port = min(port + 1, 65535)
        return Child(name, (*common, *args), grace_s, environment, log)

    keeper = child("keeper", "keeper")
    stages: Sequence[tuple[str, ...]] = [(stage,) for stage in STAGES]
    if compact:
        stages = [("admission", "engagement"), ("judge", "quotes", "dispatch", "delivery")]
    workers = [
        child(f"worker {' '.join(names)}", "worker", *names, grace_s=MARGIN_S + longest_s * ("dispatch" in names))
        for names in stages
    ]
    return [[child("ingest", "ingest")], workers, [keeper]]


def _refuse_errors(settings: Settings) -> None:
    wrong = [one for one in checks.of_settings(settings) if one.severity == "error"]
    if wrong:
        lines = "\n".join(f"`{one.path}`: {one.text}: {one.fix}" for one in wrong)
        fail(f"the configuration has errors:\n{lines}", MISUSED)


def _refuse_taken_port(settings: Settings) -> None:
    host, port = settings.ingest.host, settings.ingest.port
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        with socket.socket(*found[:3]) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(found[4])
    except OSError as error:
        fail(f"{host}:{port} cannot be listened on ({error.strerror}): set ingest.host and ingest.port")


def _own_server(config: Path | None, ending: ExitStack) -> str:
    folder = folder_of(config)
    say(f"starting a server; its data is kept in {folder}")
    server = ending.enter_context(Embedded.start(folder, durable=True))
    file = server_file(config)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        json.dump({"url": server.url, "pid": os.getpid()}, out)
    ending.callback(file.unlink, missing_ok=True)
    say(f"{server.kind} {server.version} runs on loopback")
    return server.url


def _forget_run(settings: Settings) -> None:
    """Everything has ended and the server is about to, whole: the next run need not wait as after a crash."""
    client = connect(settings.redis.url)
    try:
        client.delete(Keys(settings.redis.prefix).run_id)
    except redis_errors.RedisError:
        complain("the server was gone first: the next start waits for pipeline.lease_s before it sends")
    finally:
        client.close()


def _await_ingest(settings: Settings, ingest: Child, stop: threading.Event) -> bool:
    """Wait until ingest answers; False when the end came first. Raises Failed when it does not come up."""
    deadline = time.monotonic() + READY_S
    while not stop.wait(LOOK_S):
        if answers(settings):
            return True
        if not ingest.running:
            fail("ingest ended while it was starting: see its log above")
        if time.monotonic() > deadline:
            fail(f"ingest did not answer within {READY_S:g} s: see the log above")
    return False


def answers(settings: Settings) -> bool:
    """Whether ingest is ready."""
    try:
        return httpx.get(f"{address(settings)}/readyz", timeout=2.0, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def address(settings: Settings) -> str:
    """Where ingest is reached from this machine."""
    host = settings.ingest.host
    if host in ("0.0.0.0", "::", ""):  # noqa: S104 - compared, not bound
        host = "127.0.0.1"
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.ingest.port}"


def _welcome(settings: Settings) -> None:
    say("everything runs; Ctrl-C ends it", "bold green")
    for account in settings.accounts:
        if account.channel not in BUILT:
            continue
        if account.used_transport == "webhook":
            say(f"  {account.id} ({account.channel}): {address(settings)}/hooks/{account.id}")
        else:
            say(f"  {account.id} ({account.channel}): by {account.used_transport}")
    if not settings.accounts:
        say("  no account is configured: `millstream init` writes a configuration with one")


def _tell(child: Child, code: int, wait_s: float) -> None:
    complain(f"{child.name} ended with {code}; it is started again in {wait_s:g} s")


def _end(group: list[Child], hurry: Callable[[], bool]) -> None:
    for name in end_all(group, hurry):
        complain(f"{name} did not end in time and was killed: nothing is lost by it")
