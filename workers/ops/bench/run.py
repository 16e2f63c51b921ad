"""The benchmark: the chosen scenes, one after the other, and what was measured."""

import os
import platform
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.redis.embedded import available_kinds
from workers.ops.bench.figures import Row, sound
from workers.ops.bench.scenes import SCENES
from workers.ops.bench.sizes import Bench, Sizes


@dataclass(frozen=True, slots=True)
class Report:
    """What a run measured, and on what machine. load: processes that wanted a core in the minute before it began."""

    rows: Sequence[Row]
    seconds: float
    load: float
    cores: int
    python: str
    server: str

    @property
    def sound(self) -> bool:
        """Whether nothing of ours was lost, doubled, reordered or dropped."""
        return sound(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        machine = {"cores": self.cores, "load_before": self.load, "python": self.python, "server": self.server}
        rows = [row.to_dict() for row in self.rows]
        return machine | {"seconds": round(self.seconds, 1), "sound": self.sound, "rows": rows}


def run_bench(sizes: Sizes, only: Sequence[str], tell: Callable[[str], None], row: Callable[[Row], None]) -> Report:
    """Run the scenes named in `only` (none: all that `sizes` has work for). `tell` hears what happens now, `row` each
    row as it is known. Starts and ends its own servers and processes. Raises Failed, and EmbeddedError where no server
    can be started."""
    for name in [name for name in os.environ if name.upper().startswith("MILLSTREAM_")]:
        del os.environ[name]  # a user's configuration is not what is measured
    load = round(os.getloadavg()[0], 1)
    began, rows = time.monotonic(), list[Row]()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(sizes, Path(folder), tell)
        for name in only or [name for name in SCENES if name not in sizes.left_out]:
            for one in SCENES[name](bench):
                rows.append(one)
                row(one)
    kinds = available_kinds()
    return Report(
        rows, time.monotonic() - began, load, os.cpu_count() or 0, platform.python_version(), kinds[0] if kinds else ""
    )  # fmt: skip
