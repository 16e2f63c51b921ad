"""The clock of a host, which can jump: the processes of a host share a file, and their `time.time` and `time.time_ns`
differ from the kernel's by what the file says. The monotonic clock stays, as it does when a real host's clock is set.

Importing this puts it in place, so import it before anything that takes `time.time` by name.
"""

import mmap
import struct
import time
from pathlib import Path

_SECONDS = struct.Struct("<d")
_file: mmap.mmap | None = None
_time, _time_ns = time.time, time.time_ns


def _offset_s() -> float:
    return 0.0 if _file is None else _SECONDS.unpack_from(_file)[0]


def _shifted() -> float:
    return _time() + _offset_s()


def _shifted_ns() -> int:
    return _time_ns() + int(_offset_s() * 1_000_000_000)


time.time, time.time_ns = _shifted, _shifted_ns


def follow(path: Path) -> None:
    """This process belongs to the host with the clock `path`."""
    global _file
    with path.open("rb") as file:
        _file = mmap.mmap(file.fileno(), _SECONDS.size, access=mmap.ACCESS_READ)


def jump(path: Path, seconds: float) -> None:
    """Set a host's clock: off by `seconds` from now on. Makes the file where there is none."""
    with path.open("r+b" if path.exists() else "wb") as file:
        file.write(_SECONDS.pack(seconds))
