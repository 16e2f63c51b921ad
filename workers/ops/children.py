"""Processes that this one starts, watches and ends. Each ends by itself when this one is gone, however it ended."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

BACKOFF_S: Final = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Waits before a process that ended is started again; a fault in the configuration is retried twice a minute."""
STEADY_S: Final = 60.0
"""A process that ran so long begins anew with the shortest wait."""
_POLL_S: Final = 0.02


@dataclass(slots=True)
class Child:
    """One command of `millstream` as a process. `grace_s`: what TERM may take before it is killed."""

    name: str
    args: tuple[str, ...]
    grace_s: float = 30.0
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    log: int | None = None
    process: "subprocess.Popen[bytes] | None" = None
    started_at: float = 0.0
    falls: int = 0
    not_before: float = 0.0

    def start(self) -> None:
        """Start it. Its standard input is a pipe whose other end only this process has."""
        self.started_at = time.monotonic()
        # A session of its own: Ctrl-C at the terminal is for this process, which then ends all in order.
        self.process = subprocess.Popen(
            [sys.executable, "-m", "workers.ops.cli", "--tied", *self.args],
            stdin=subprocess.PIPE,
            stdout=self.log,
            stderr=self.log,
            env={**os.environ, **self.environment},
            start_new_session=True,
        )

    @property
    def running(self) -> bool:
        """True while the process is there."""
        return self.process is not None and self.process.poll() is None

    def end(self) -> None:
        """Ask it to end; nothing happens when it has."""
        if self.process is not None and self.running:
            self.process.terminate()

    def kill(self) -> None:
        """End it at once: records and leases cover what it did."""
        if self.process is not None and self.running:
            self.process.kill()

    def wait(self, until: float) -> int | None:
        """Its exit code, or None when it still runs at `until` (monotonic seconds)."""
        if self.process is None:
            return 0
        try:
            code = self.process.wait(max(until - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            return None
        if self.process.stdin is not None:
            self.process.stdin.close()
        return code


def watch(children: Iterable[Child], tell: Callable[[Child, int, float], None]) -> None:
    """Look at each child once: one that ended is told (exit code, seconds to wait) and started again after a wait."""
    now = time.monotonic()
    for child in children:
        process = child.process
        if process is None:
            if now >= child.not_before:
                child.start()
        elif (code := process.poll()) is not None:
            child.wait(now)
            child.falls = 1 if now - child.started_at > STEADY_S else child.falls + 1
            wait_s = BACKOFF_S[min(child.falls, len(BACKOFF_S)) - 1]
            child.process, child.not_before = None, now + wait_s
            tell(child, code, wait_s)


def end_all(children: Iterable[Child], hurry: Callable[[], bool] = lambda: False) -> list[str]:
    """End children together; returns the names of those that had to be killed: beyond their grace, or on `hurry`."""
    ending = [child for child in children if child.running]
    began = time.monotonic()
    for child in ending:
        child.end()
    killed: list[str] = []
    while ending:
        for child in ending:
            if hurry() or time.monotonic() - began > child.grace_s:
                killed.append(child.name)
                child.kill()
        for child in ending:
            child.wait(time.monotonic() + _POLL_S)
        ending = [child for child in ending if child.wait(time.monotonic()) is None]
    return killed
