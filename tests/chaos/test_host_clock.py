"""The clock of a host jumps for its own processes, at once, and their monotonic clock does not."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.world import ROOT

PROGRAM = """
import sys, time
from pathlib import Path
from tests.chaos import host_clock
from time import time as by_name
path = Path(sys.argv[1])
host_clock.jump(path, 0)
host_clock.follow(path)
before = time.monotonic()
host_clock.jump(path, float(sys.argv[2]))
real = time.clock_gettime(time.CLOCK_REALTIME)
print(round(time.time() - real), round(by_name() - real), round(time.time_ns() / 1e9 - real))
print(round(time.monotonic() - before))
"""


@pytest.mark.parametrize("seconds", [60, -60])
def test_a_jump_moves_the_time_of_day_and_nothing_else(seconds: int, tmp_path: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "clock"), str(seconds)],
        capture_output=True, text=True, check=True, timeout=60, cwd=ROOT,
    ).stdout  # fmt: skip
    assert said.split() == [str(seconds)] * 3 + ["0"]
