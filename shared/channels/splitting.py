"""An answer cut into what a platform can take. Pure.

Nothing here knows a platform: the limit, its unit and the rendering are arguments.
"""

import bisect
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from shared.channels.markup import FENCE
from shared.channels.port import Limits, Part
from shared.channels.reading import whole

Unit: TypeAlias = Literal["code_points", "utf16", "utf8"]

FENCE_ROOM = 40
"""Room kept in a piece for closing and reopening a code fence; a limit below four times this leaves fences alone."""

_TAG = re.compile(r"<(/?)(dsh_im_[a-z0-9_]{1,40}|think)>")
_WIDE_ENDS = "。！？；"
_NARROW_ENDS = ".!?;:"


def plan_parts(parts: Sequence[Part], limits: Limits, render: Callable[[str], str]) -> list[Part]:
    """The parts to send, in order: no own blocks and no reasoning in them, none empty, each within the limit.

    A part that cannot be sent yet (an image, a file) becomes a line that names it. Where a message gets only so many
    replies, parts that would be too many go together, as few and as long as they can be; one reply is left for a
    notice.
    """
    texts = [render(cut_blocks(part.text)) if part.kind == "text" else described(part) for part in parts]
    pieces = [piece for text in texts for piece in split(text, limits.text_units, limits.unit)]
    if 0 < limits.replies <= len(pieces):
        pieces = split("\n\n".join(text.strip() for text in texts if text.strip()), limits.text_units, limits.unit)
    return [Part("text", text=piece) for piece in pieces]


def described(part: Part) -> str:
    """The visible line that stands for a part that cannot be sent: `[image: NAME]`."""
    name = " ".join((part.name or "").split())[:255]
    return f"[{part.kind}: {name}]" if name else f"[{part.kind}]"


def cut_blocks(text: str) -> str:
    """`text` without `<dsh_im_…>` blocks and `<think>` blocks, trimmed.

    Of a `<dsh_im_…>` block that never ends the line goes (a block is one line); reasoning at the start that never ends
    is all there is; and reasoning whose opening tag the model's template swallowed ends at a `</think>` line.
    """
    closings: dict[str, list[tuple[int, int]]] = {}
    openings: list[tuple[str, int, int]] = []
    for tag in _TAG.finditer(text):
        if tag.group(1):
            closings.setdefault(tag.group(2), []).append(tag.span())
        else:
            openings.append((tag.group(2), *tag.span()))
    cuts = _unopened(text, openings, closings)
    first = len(text) - len(text.lstrip())
    for name, start, end in openings:
        if cuts and start < cuts[-1][1]:
            continue
        ends = closings.get(name, [])
        index = bisect.bisect_left(ends, (end, 0))
        if index < len(ends):
            cuts.append((start, ends[index][1]))
        elif name != "think":
            line_end = text.find("\n", end)
            cuts.append((start, len(text) if line_end < 0 else line_end))
        elif start <= first:
            return ""
    cuts += [span for name, spans in closings.items() if name != "think" for span in spans]
    return _without(text, cuts).strip()


def _unopened(
    text: str, openings: list[tuple[str, int, int]], closings: dict[str, list[tuple[int, int]]]
) -> list[tuple[int, int]]:
    if not (ends := closings.get("think")):
        return []
    start, end = ends[0]
    if any(name == "think" and opened < start for name, opened, _ in openings):
        return []
    before, after = text[:start], text[end:]
    alone = (not before.strip(" \t") or before.rstrip(" \t").endswith("\n")) and (
        not after.strip(" \t") or after.lstrip(" \t").startswith("\n")
    )
    return [(0, end)] if alone else []


def _without(text: str, cuts: list[tuple[int, int]]) -> str:
    kept: list[str] = []
    at = 0
    for start, end in sorted(cuts):
        if start > at:
            kept.append(text[at:start])
        at = max(at, end)
    return "".join([*kept, text[at:]])


def width(text: str, unit: Unit) -> int:
    """The length of `text` in `unit`."""
    match unit:
        case "code_points":
            return len(text)
        case "utf16":
            return len(text.encode("utf-16-le")) // 2
        case "utf8":
            return len(text.encode())


def split(text: str, limit: int, unit: Unit) -> list[str]:
    """`text` in pieces of at most `limit` units, in order; white space at the cuts goes, nothing else.

    A cut is between paragraphs, else lines, else sentences, else words, else graphemes. A code fence that is cut is
    closed, and opened again in the next piece.
    """
    rest = whole(text).strip()
    fences = limit >= 4 * FENCE_ROOM and ("```" in rest or "~~~" in rest)
    pieces: list[str] = []
    reopened = ""
    while rest:
        room = limit - width(reopened, unit)
        if width(rest, unit) <= room:
            pieces.append(reopened + rest)
            break
        cut = _cut(rest, room - (FENCE_ROOM if fences else 0), unit)
        taken = rest[:cut].rstrip()
        piece = reopened + taken
        opening = _open_fence(piece) if fences else None
        if opening is None:
            rest = rest[cut:].lstrip()
            reopened = ""
        else:
            # Indentation means something in code: only the line ends at the cut go.
            rest = rest[cut:].lstrip("\n")
            piece += f"\n{opening[0]}"
            reopened = f"{opening[0]}{opening[1]}\n"
        if taken.strip():
            pieces.append(piece)
    return pieces


def _cut(text: str, room: int, unit: Unit) -> int:
    """Where to cut `text`, which is longer than `room`: at least one code point."""
    end = _fitting(text, room, unit)
    least = end // 2
    for mark in ("\n\n", "\n"):
        if (found := text.rfind(mark, least, end + len(mark))) > 0:
            return found
    places = range(min(end, len(text) - 1), least, -1)
    for index in places:
        if text[index - 1] in _WIDE_ENDS and is_boundary(text, index):
            return index
        if text[index - 1] in _NARROW_ENDS and _is_gap(text, index):
            return index
    for index in places:
        if _is_gap(text, index):
            return index
    for index in range(end, 0, -1):
        if is_boundary(text, index):
            return index
    return max(end, 1)  # one grapheme longer than the limit: code points are all that is left


def _is_gap(text: str, index: int) -> bool:
    return text[index].isspace() and is_boundary(text, index + 1)


def _fitting(text: str, room: int, unit: Unit) -> int:
    """How many code points of `text` fit into `room` units."""
    if unit == "code_points":
        return min(room, len(text))
    used = 0
    for index, character in enumerate(text):
        used += width(character, unit)
        if used > room:
            return index
    return len(text)


def _open_fence(piece: str) -> tuple[str, str] | None:
    """The mark and the language of the code fence that is open at the end of `piece`, or None."""
    opened: tuple[str, str] | None = None
    for line in piece.split("\n"):
        found = FENCE.match(line)
        if opened is None:
            if found:
                language = found.group(2).strip().split(" ")[0]
                mark = found.group(1)
                fits = language.isascii() and len(language) + 2 * len(mark) < FENCE_ROOM - 4
                opened = (mark[:10], language if fits else "")
        elif found and found.group(1).startswith(opened[0]) and not found.group(2).strip():
            opened = None
    return opened


def is_boundary(text: str, index: int) -> bool:
    """True when a cut before `text[index]` leaves every grapheme whole (the rules of UAX #29 that matter in chats)."""
    if index <= 0 or index >= len(text):
        return True
    before, after = text[index - 1], text[index]
    if before in "\r\n":
        return before == "\n" or after != "\n"
    if _extends(after) or before == "\u200d":
        return False
    if _is_flag(before) and _is_flag(after):
        start = index
        while start > 0 and _is_flag(text[start - 1]):
            start -= 1
        return (index - start) % 2 == 0
    return not _joins_hangul(before, after)


def _extends(character: str) -> bool:
    """Combining marks (variation selectors are some), joiners, skin tones, the tags of subdivision flags."""
    code = ord(character)
    if code < 0x300:
        return False
    return (
        unicodedata.category(character) in ("Mn", "Me", "Mc")
        or code in (0x200C, 0x200D)
        or 0x1F3FB <= code <= 0x1F3FF
        or 0xE0020 <= code <= 0xE007F
    )


def _is_flag(character: str) -> bool:
    return 0x1F1E6 <= ord(character) <= 0x1F1FF


def _joins_hangul(before: str, after: str) -> bool:
    """Conjoining jamo: L with L, V or a syllable; V and LV with V or T; T and LVT with T."""
    first, second = ord(before), ord(after)
    leading = 0x1100 <= first <= 0x115F
    syllable = 0xAC00 <= first <= 0xD7A3
    vowel, final = 0x1160 <= second <= 0x11A7, 0x11A8 <= second <= 0x11FF
    if leading:
        return 0x1100 <= second <= 0x11A7 or 0xAC00 <= second <= 0xD7A3
    if 0x1160 <= first <= 0x11A7 or (syllable and (first - 0xAC00) % 28 == 0):
        return vowel or final
    return (syllable or 0x11A8 <= first <= 0x11FF) and final
