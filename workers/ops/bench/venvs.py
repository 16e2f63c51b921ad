"""The peers' virtual environments: made once, kept in the user's cache, made again when the pins change."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

PINS: Final[dict[str, tuple[str, ...]]] = {
    "celery": ("celery[redis]==5.7.0", "kombu==5.7.0", "redis[hiredis]==8.1.0"),
    "dramatiq": ("dramatiq==2.2.1", "redis[hiredis]==8.1.0"),
    "taskiq": ("taskiq==0.13.0", "taskiq-redis==1.2.4", "redis[hiredis]==8.1.0"),
    "starlette": ("starlette==1.10.0", "uvicorn==0.54.0", "redis[hiredis]==8.1.0"),
}
"""Celery, redis-py, Starlette and uvicorn are pinned as ours; the others as they were when this was written."""
INSTALL_S: Final = 240.0
_READY: Final = ".ready"


class NotMade(Exception):
    """A peer's environment could not be made; the text says why, for its row."""


def cache() -> Path:
    """Where the environments are kept: below XDG_CACHE_HOME, or `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "millstream" / "bench"


def python_of(peer: str, folder: Path | None = None) -> Path:
    """The Python of a peer's environment, which is made when it is not there. Raises NotMade."""
    pins = PINS[peer]
    mark = hashlib.sha256("\n".join((sys.version, *pins)).encode()).hexdigest()[:12]
    home = (folder or cache()) / f"{peer}-{mark}"
    python = home / "bin" / "python"
    if (home / _READY).exists() and python.exists():
        return python
    try:
        shutil.rmtree(home, ignore_errors=True)
        home.parent.mkdir(parents=True, exist_ok=True)
        _run("python -m venv", [sys.executable, "-m", "venv", str(home)])
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1"]
        _run(f"pip install {' '.join(pins)}", [*pip, *pins])
    except OSError as error:
        raise NotMade(f"no virtual environment in {home.parent}: {error.strerror}") from error
    (home / _READY).touch()
    return python


def _run(what: str, command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    except subprocess.TimeoutExpired:
        raise NotMade(f"{what} took longer than {INSTALL_S:g} s: is the package registry reachable?") from None
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise NotMade(f"{what} failed: {said[-1][:200] if said else 'see pip'}")
