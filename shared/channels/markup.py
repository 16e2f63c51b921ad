"""The Markdown that models write, read into visible text with styles. Pure.

Only what survives every platform is read: headings, bold, italic, strike, code, fenced code, links. Anything else, and
any marker without its partner, stays as it was written: text is never lost to markup. Underscores mark nothing, since
they are more often part of a name.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

Style: TypeAlias = Literal["bold", "italic", "strikethrough", "code", "pre", "link"]


@dataclass(frozen=True, slots=True)
class Span:
    """A style over `text[start:end]` (code points). `detail`: a link's address or a fence's language."""

    style: Style
    start: int
    end: int
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Styled:
    """Visible text and its styles, outer spans before inner ones."""

    text: str
    spans: tuple[Span, ...]


FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^`\n]*)")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(?=\S)")

# Bounded repetitions: a paragraph of markers must not take quadratic time.
_INLINE = re.compile(
    r"""
    (?P<escape>\\[*_`~#])
  | (?<!`)(?P<ticks>`{1,3})(?P<code>[^\n]{1,1000}?)(?<!`)(?P=ticks)(?!`)
  | !?\[(?P<label>[^\[\]\n]{1,500})\]\((?P<url>(?:https?://|mailto:|tg://)[^\s()<>|]{1,1000})\)
  | \*\*(?=\S)(?P<bolded>[^\n]{1,1000}?)(?<=\S)\*\*
  | ~~(?=\S)(?P<struck>[^\n]{1,1000}?)(?<=\S)~~
  | (?<![\w*])\*(?=[^\s*])(?P<slanted>[^*\n]{1,1000}?)(?<=\S)\*(?![\w*])
    """,
    re.VERBOSE,
)


def parse(markdown: str) -> Styled:
    """`markdown` as visible text and styles; never longer than `markdown`."""
    out = _Out()
    lines = markdown.split("\n")
    at = 0
    while at < len(lines):
        if at:
            out.add("\n")
        opening = FENCE.match(lines[at])
        closing = _closing(lines, at, opening.group(1)) if opening else None
        if opening and closing is not None and closing > at + 1:
            start = out.length
            out.add("\n".join(lines[at + 1 : closing]))
            out.spans.append(Span("pre", start, out.length, opening.group(2).strip().split(" ")[0]))
            at = closing + 1
            continue
        _line(lines[at], out)
        at += 1
    return Styled("".join(out.parts), tuple(out.spans))


def write(styled: Styled, escape: Callable[[str], str], wrap: Callable[[Span, str], str]) -> str:
    """`styled` in a notation with brackets: `escape` for plain text, `wrap` for a span around its written inside."""
    return _written(styled.text, 0, len(styled.text), styled.spans, escape, wrap)


def plain(markdown: str) -> str:
    """`markdown` for a platform without styles: visible text, a link's address in parentheses behind its label."""
    return write(parse(markdown), str, _unstyled)


def _unstyled(span: Span, inside: str) -> str:
    return f"{inside} ({span.detail})" if span.style == "link" and span.detail != inside else inside


def _written(
    text: str,
    start: int,
    end: int,
    spans: tuple[Span, ...],
    escape: Callable[[str], str],
    wrap: Callable[[Span, str], str],
) -> str:
    parts: list[str] = []
    at = start
    for index, span in enumerate(spans):
        if span.start < at or span.end > end:
            continue  # inside the span before it
        # Spans stand in order of their starts: those inside follow at once, so that many spans take linear time.
        following = index + 1
        while following < len(spans) and spans[following].start < span.end:
            following += 1
        inner = tuple(other for other in spans[index + 1 : following] if other.end <= span.end)
        parts.append(escape(text[at : span.start]))
        parts.append(wrap(span, _written(text, span.start, span.end, inner, escape, wrap)))
        at = span.end
    parts.append(escape(text[at:end]))
    return "".join(parts)


class _Out:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self.spans: list[Span] = []
        self.length = 0

    def add(self, text: str) -> None:
        self.parts.append(text)
        self.length += len(text)


def _closing(lines: list[str], at: int, mark: str) -> int | None:
    """The line that closes the fence opened on line `at`, or None."""
    for index in range(at + 1, len(lines)):
        line = lines[index].strip()
        if line.startswith(mark) and not line.strip(mark[0]):
            return index
    return None


def _line(line: str, out: _Out) -> None:
    if heading := _HEADING.match(line):
        start = out.length
        place = len(out.spans)
        _inline(line[heading.end() :].rstrip(), out)
        out.spans.insert(place, Span("bold", start, out.length))
        return
    _inline(line, out)


def _inline(text: str, out: _Out, depth: int = 4) -> None:
    at = 0
    for match in _INLINE.finditer(text):
        out.add(text[at : match.start()])
        at = match.end()
        _piece(match, out, depth)
    out.add(text[at:])


def _piece(match: re.Match[str], out: _Out, depth: int) -> None:
    start, place = out.length, len(out.spans)
    style, inner, detail = _style_of(match)
    if style is None or depth == 0:
        out.add(inner)
        return
    if style == "code":
        out.add(inner)
    else:
        _inline(inner, out, depth - 1)
    out.spans.insert(place, Span(style, start, out.length, detail))


def _style_of(match: re.Match[str]) -> tuple[Style | None, str, str]:
    found = match.groupdict()
    if found["escape"] is not None:
        return None, found["escape"][1:], ""
    if found["code"] is not None:
        return "code", found["code"], ""
    if found["label"] is not None:
        return "link", found["label"], found["url"]
    if found["bolded"] is not None:
        return "bold", found["bolded"], ""
    if found["struck"] is not None:
        return "strikethrough", found["struck"], ""
    return "italic", found["slanted"], ""
