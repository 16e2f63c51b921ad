"""A disk that is full, for one server and without privileges: no file of it may grow any further.

The kernel tells who writes beyond its limit by EFBIG instead of ENOSPC, and by a signal, which a server does not know
and would die of; so it is started by a program that has it ignored.
"""

import resource
import sys
from pathlib import Path

from shared.redis.embedded import Embedded

SPARE_BYTES = 4096
"""How much the fullest file may still grow: the last write before the disk is full is cut off in its middle."""


def installed(folder: Path, like: Embedded) -> Path:
    """A `redis-server` in `folder` that survives a full disk: the program of the running server `like`."""
    folder.mkdir()
    made = folder / "redis-server"
    binary = Path(f"/proc/{like.pid}/exe").readlink()
    made.write_text(
        f"#!{sys.executable} -IS\n"
        "import os, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f'os.execv({str(binary)!r}, ["redis-server", *sys.argv[1:]])\n'
    )
    made.chmod(0o700)
    return made


def fill(on: Embedded, data: Path) -> None:
    """From now on nothing in `data` can grow much."""
    largest = max(file.stat().st_size for file in data.rglob("*") if file.is_file())
    _limit(on, largest + SPARE_BYTES)


def make_room(on: Embedded) -> None:
    """There is room again."""
    _limit(on, resource.RLIM_INFINITY)


def _limit(on: Embedded, size: int) -> None:
    _, hard = resource.prlimit(on.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(on.pid, resource.RLIMIT_FSIZE, (size if hard == resource.RLIM_INFINITY else min(size, hard), hard))
