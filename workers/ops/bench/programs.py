"""Programs beside this process that take an order a line and answer a line; each ends when its input closes."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import IO, Any, Final, Self, cast

from workers.ops.output import fail

END_S: Final = 10.0


class Program:
    """One of them. `name` is told when it fails. `log`: a file descriptor for its stderr."""

    def __init__(
        self, name: str, command: Sequence[str], log: int, environment: Mapping[str, str] | None = None
    ) -> None:
        self._name = name
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, **(environment or {})},
            text=True,
            start_new_session=True,
        )
        # Both are pipes, as asked for above.
        self._given = cast("IO[str]", self._process.stdin)
        self._told = cast("IO[str]", self._process.stdout)

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def order(self, order: Mapping[str, Any]) -> None:
        """Give an order."""
        self._given.write(json.dumps(order) + "\n")
        self._given.flush()

    def answer(self) -> dict[str, Any]:
        """Wait for the answer. Raises Failed when the program has ended."""
        line = self._told.readline()
        if not line:
            fail(f"{self._name} ended before it answered: see the log")
        return json.loads(line)

    def ask(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Give an order and wait for the answer."""
        self.order(order)
        return self.answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close its input, and kill it when it does not end."""
        self._given.close()
        self._told.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def ours(module: str, log: int, *args: str, environment: Mapping[str, str] | None = None) -> Program:
    """One of this package's programs: load, feed or platform."""
    return Program(module, [sys.executable, "-m", f"workers.ops.bench.{module}", *args], log, environment)
