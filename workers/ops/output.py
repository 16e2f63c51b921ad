"""What the commands print: lines, tables, JSON; and the one error that ends a command with a sentence."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NoReturn

from rich.console import Console
from rich.table import Table
from rich.text import Text

DONE, FAILED, MISUSED = 0, 1, 2
"""Exit codes: done; it could not be done, or an expectation did not hold; the command or its input was wrong."""

WIDE: Final = 200
"""Columns of output that goes to no terminal: nobody sees where it would be cut."""


class Failed(Exception):
    """Ends a command with one clear line that says what to do; never with a traceback."""

    def __init__(self, text: str, code: int = FAILED) -> None:
        super().__init__(text)
        self.code = code


def fail(text: str, code: int = FAILED) -> NoReturn:
    """Raise Failed."""
    raise Failed(text, code)


def console(*, stderr: bool = False) -> Console:
    """A console for this moment's stdout or stderr. Neither markup nor highlighting: texts may hold brackets."""
    made = Console(stderr=stderr, markup=False, highlight=False, soft_wrap=True)
    return made if made.is_terminal else Console(stderr=stderr, markup=False, highlight=False, width=WIDE)


def say(text: str, style: str = "") -> None:
    """One line to stdout."""
    console().print(Text(text, style), soft_wrap=True)


def complain(text: str) -> None:
    """One line to stderr."""
    console(stderr=True).print(Text(text), soft_wrap=True)


def dump(value: Any) -> None:
    """JSON to stdout: what `--json` prints."""
    print(json.dumps(value, ensure_ascii=False, indent=2))


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> None:
    """A table to stdout; absent values are empty."""
    made = Table(title=title or None, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, overflow="fold")
    for row in rows:
        made.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    console().print(made)


def when(at_ms: int | None) -> str:
    """A time for people, UTC; empty for none."""
    if not at_ms:
        return ""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + "Z"
