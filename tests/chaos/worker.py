"""The processes of the integration and chaos tests, forked from one program that has imported everything.

    python -m tests.chaos.worker STAGE --config FILE [--fault POINT --nth N]    one process
    python -m tests.chaos.worker serve                                          the nursery

STAGE is a stage, `keeper` or `ingest`; FILE is the configuration as JSON. The nursery reads one JSON object a line
{stage, config, log, fault, nth, freeze, clock} and answers with the new process's id. A child is a session of its own
and writes `ready` to its log; it is killed from outside, by id. When the nursery's input ends, its children end too.

freeze: the fault point stops the process (SIGSTOP) instead of killing it. clock: the file of its host's clock, see
tests/chaos/host_clock.py.
"""

import argparse
import json
import os
import signal
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.chaos import host_clock  # isort: skip - first: others take `time.time` by name

from celery import signals

from ingest.process import run_ingest
from shared.logging import configure
from shared.settings import from_mapping
from workers.keeper.process import run_keeper
from workers.process import run_worker

OURS = "MILLSTREAM_"


class FaultyProbe:
    """Kills this process, as the kernel or a host's end would, when `fault` is reached for the `nth` time; or `freeze`s
    it there."""

    def __init__(self, fault: str, nth: int, freeze: bool) -> None:
        self._fault = fault
        self._left = nth
        self._signal = signal.SIGSTOP if freeze else signal.SIGKILL

    def point(self, name: str, id_: str = "") -> None:
        if name == self._fault:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), self._signal)


def ready(**_: Any) -> None:
    print("ready", flush=True)


def listening(port: int) -> None:
    print(f"ready {port}", flush=True)


def run(stage: str, config: str, fault: str = "", nth: int = 1, freeze: bool = False) -> int:
    settings = from_mapping(json.loads(Path(config).read_text()))
    configure(settings.log)
    if stage == "ingest":
        return run_ingest(settings, listening)
    if stage == "keeper":
        ready()
        return run_keeper(settings)
    signals.worker_ready.connect(ready, weak=False)
    if fault:
        # One thread: what it dies with is exactly one thing.
        return run_worker(settings, stage, concurrency=1, probe=FaultyProbe(fault, nth, freeze))  # type: ignore[arg-type]
    return run_worker(settings, stage)  # type: ignore[arg-type]


def _fork(order: dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        sys.argv = [sys.argv[0]]
        if order.get("clock"):
            host_clock.follow(Path(order["clock"]))
        code = run(
            order["stage"], order["config"], order.get("fault", ""), order.get("nth", 1), order.get("freeze", False)
        )
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def serve() -> None:
    """The nursery: single-threaded, so that forking is safe; the kernel reaps the children."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    children: list[int] = []
    for line in sys.stdin:
        children.append(_fork(json.loads(line)))
        print(children[-1], flush=True)
    for pid in children:
        with suppress(ChildProcessError):  # gone already; its number may be somebody else's by now
            if os.waitpid(pid, os.WNOHANG) == (0, 0):
                os.kill(pid, signal.SIGKILL)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("stage")
    parser.add_argument("--config", default="")
    parser.add_argument("--fault", default="")
    parser.add_argument("--nth", type=int, default=1)
    asked = parser.parse_args()
    for name in [name for name in os.environ if name.startswith(OURS)]:
        del os.environ[name]  # the file is the whole configuration
    sys.argv = sys.argv[:1]  # Celery reads what is left
    if asked.stage == "serve":
        serve()
        return 0
    return run(asked.stage, asked.config, asked.fault, asked.nth)


if __name__ == "__main__":
    sys.exit(main())
