"""What a crash of the server's host takes with it, since the append-only file is synced once a second: kill -9 alone
leaves the kernel with everything that was written, so the file is cut back to what it was a second before."""

import os
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

EVERY_S = 0.02


class Sizes:
    """How large the append-only file was, and when, while the block runs."""

    def __init__(self, data: Path) -> None:
        [self._file] = data.glob("appendonlydir/*.incr.aof")
        self._seen: list[tuple[float, int]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="sizes")

    def _watch(self) -> None:
        while not self._stop.wait(EVERY_S):
            self._seen.append((time.monotonic(), self._file.stat().st_size))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def span_s(self) -> float:
        """How long it has been watched."""
        return self._seen[-1][0] - self._seen[0][0] if self._seen else 0.0

    def cut_back(self, since: float) -> float:
        """Take away what was written after `since` (monotonic seconds), a look's length more at most; the time of the
        look. The server must have ended."""
        at, size = max(look for look in self._seen if look[0] <= since)
        assert size < self._file.stat().st_size, "nothing was written in that time"
        os.truncate(self._file, size)
        return at
