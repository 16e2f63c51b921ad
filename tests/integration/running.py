"""`millstream` as a process for integration tests: started, waited for by what it says, ended by its id."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.platforms.emulator import Answer, Asked, Emulator

PATIENCE_S = 60.0
"""Two cores start nine interpreters beside other tests."""


def eventually(holds: Callable[[], bool], what: str, within_s: float = PATIENCE_S) -> None:
    """Wait for a condition; fails beyond `within_s`."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.05)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def environment() -> dict[str, str]:
    """This process's environment without what would change a configuration."""
    return {name: value for name, value in os.environ.items() if not name.upper().startswith("MILLSTREAM_")}


def millstream(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "workers.ops.cli", *args],
        cwd=folder, env=environment(), capture_output=True, text=True, timeout=PATIENCE_S * 2, check=False,
    )  # fmt: skip


@dataclass
class Running:
    """A command that runs. `log`: where its output goes."""

    process: "subprocess.Popen[bytes]"
    log: Path

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def says(self, text: str) -> None:
        """Wait until it has said `text`."""

        def holds() -> bool:
            ended = self.process.poll() is not None and text not in self.said()
            assert not ended, f"it ended before it said {text!r}:\n{self.said()}"
            return text in self.said()

        eventually(holds, f"{text!r} in\n{self.said()}")


@contextmanager
def running(folder: Path, *args: str) -> Iterator[Running]:
    """Run a command in `folder` for the length of a test."""
    log = folder / "output.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "workers.ops.cli", *args],
            cwd=folder, env=environment(), stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    try:
        yield Running(process, log)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE_S)
        finally:
            if process.poll() is None:
                process.kill()


def descendants(pid: int) -> set[int]:
    """Every process below `pid`."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        parents[int(stat.parent.name)] = int(fields[1])
    found: set[int] = set()
    level = {pid}
    while level:
        level = {child for child, parent in parents.items() if parent in level}
        found |= level
    return found


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has asked for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Callback(Emulator):
    """Where the mock channel's answers go."""

    def handle(self, asked: Asked) -> Answer:
        self.note(str(asked.json()["type"]), asked.json())
        return Answer(body={"id": f"out-{len(self.seen)}"})

    def texts(self) -> list[str]:
        """The answers taken, in order."""
        return [str(body["text"]) for body in self.sent("message")]
