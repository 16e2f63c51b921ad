"""The table of a chaos run."""

from collections.abc import Sequence
from typing import Any

COLUMNS = ("scene", "accepted", "answered", "dead by reason", "doubled", "lost", "reordered", "seconds", "faults")
NUMBERS = frozenset({"accepted", "answered", "doubled", "lost", "reordered", "seconds"})


def lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    """A line a scene under a line of names, in columns. `rows`: `tests.chaos.rig.Row` as dictionaries."""
    cells = [COLUMNS, *(tuple(_cell(row, column) for column in COLUMNS) for row in rows)]
    widths = [max(len(row[n]) for row in cells) for n in range(len(COLUMNS))]
    return ["  ".join(_aligned(*each) for each in zip(COLUMNS, row, widths, strict=True)).rstrip() for row in cells]


def _cell(row: dict[str, Any], column: str) -> str:
    if column == "dead by reason":
        return ", ".join(f"{reason} {n}" for reason, n in row["dead"].items()) or "-"
    return str(row[column])


def _aligned(column: str, text: str, width: int) -> str:
    return text.rjust(width) if column in NUMBERS else text.ljust(width)
