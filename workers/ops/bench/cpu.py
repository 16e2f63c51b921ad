"""Processor time of processes: on a busy machine it says more than a rate, since waiting does not count."""

import os
from collections.abc import Iterable
from pathlib import Path


def cpu_s(pids: Iterable[int]) -> float | None:
    """Seconds that these processes have computed so far; None where the system does not tell (no /proc)."""
    ticks = 0
    for pid in pids:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        except OSError:
            return None
        ticks += sum(int(field) for field in stat.rpartition(")")[2].split()[11:13])  # utime and stime (proc(5))
    return ticks / os.sysconf("SC_CLK_TCK")


def total(one_s: float | None, other_s: float | None) -> float | None:
    """Both together, where both could be taken."""
    return None if one_s is None or other_s is None else one_s + other_s


def since(before_s: float | None, after_s: float | None) -> float | None:
    """The seconds between two looks, where both could be taken."""
    return None if before_s is None or after_s is None else after_s - before_s
