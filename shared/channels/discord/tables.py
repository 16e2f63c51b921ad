"""Markdown as Discord shows it. Pure: Discord reads most of it itself, but no tables and no deep headings."""

import re
import unicodedata

from shared.channels.markup import FENCE, plain

_RULE = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?")
_CELL_END = re.compile(r"(?<!\\)\|")
WIDEST = 40
"""Widest column that others are aligned to: one long cell must not pad every row."""

_DEEP = re.compile(r" {0,3}#{4,6}(?=[ \t])")


def rendered(markdown: str) -> str:
    """`markdown` with its tables as code blocks and headings of the levels 4 to 6 as level 3; code stays as it is.

    Pings need no care here: `allowed_mentions` of every send forbids them all.
    """
    lines = markdown.split("\n")
    out: list[str] = []
    fence = ""
    at = 0
    while at < len(lines):
        line = lines[at]
        if fence:
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif opening := FENCE.match(line):
            fence = opening.group(1)
        elif (end := _table_end(lines, at)) > at:
            out += _drawn([_cells(row) for row in (line, *lines[at + 2 : end])])
            at = end
            continue
        else:
            line = _DEEP.sub("###", line)
        out.append(line)
        at += 1
    return "\n".join(out)


def _table_end(lines: list[str], at: int) -> int:
    """The line behind the table that begins on line `at`; `at` when none does."""
    if at + 1 >= len(lines) or "|" not in lines[at] or "-" not in lines[at + 1]:
        return at
    if not _RULE.fullmatch(lines[at + 1].strip()) or len(_cells(lines[at])) != len(_cells(lines[at + 1])):
        return at
    end = at + 2
    while end < len(lines) and "|" in lines[end] and not FENCE.match(lines[end]):
        end += 1
    return end


def _cells(row: str) -> list[str]:
    inner = row.strip().removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    return [cell.strip() for cell in _CELL_END.split(inner)]


def _drawn(rows: list[list[str]]) -> list[str]:
    """Columns as wide as their widest cell; rows with cells too many or too few keep what they have."""
    texts = [[plain(cell.replace("\\|", "|")).replace("```", "'''") for cell in row] for row in rows]
    columns = max(len(row) for row in texts)
    widths = [min(max(_width(row[n]) for row in texts if n < len(row)), WIDEST) for n in range(columns)]
    drawn = ["  ".join(cell + " " * (widths[n] - _width(cell)) for n, cell in enumerate(row)).rstrip() for row in texts]
    return ["```", drawn[0], "  ".join("-" * width for width in widths), *drawn[1:], "```"]


def _width(text: str) -> int:
    """Columns in a fixed-width type: East Asian wide characters take two."""
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)
