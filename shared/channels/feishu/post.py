"""Markdown as the content of a Feishu message: bare text, or a post with styles. Pure.

In a post's text nothing is notation, so an answer that has styles or a `<` goes as one: no `<at …>` in it pings.
"""

import json
import re
from itertools import pairwise

from shared.channels.feishu.limits import MAX_STYLES, POST_BYTES
from shared.channels.markup import Span, Styled, parse, plain
from shared.channels.port import Json
from shared.channels.reading import whole

_STYLES = {"bold": "bold", "italic": "italic", "strikethrough": "lineThrough"}
_AT = re.compile(r"<(?=/?at\b)", re.IGNORECASE)


def content_of(markdown: str) -> tuple[str, str]:
    """The message type and its content, which is JSON in a string."""
    styled = parse(whole(markdown))
    if styled.text.strip() and 0 < len(styled.spans) + styled.text.count("<") <= MAX_STYLES:
        content = _json({"zh_cn": {"content": rows_of(styled)}})
        if len(content.encode()) <= POST_BYTES:
            return "post", content
    return bare_content_of(markdown)


def bare_content_of(markdown: str) -> tuple[str, str]:
    """The same as bare text. Pings lose their bracket to a look-alike."""
    text = plain(whole(markdown))
    return "text", _json({"text": _AT.sub("\uff1c", text if text.strip() else whole(markdown))})


def rows_of(styled: Styled) -> list[list[dict[str, Json]]]:
    """A post's lines. Code blocks have a line of their own."""
    text, spans = styled.text, styled.spans
    ends = {edge for span in spans for edge in (span.start, span.end)}
    cuts = sorted({0, len(text), *ends} | {at for at, character in enumerate(text) if character == "\n"})
    rows: list[list[dict[str, Json]]] = [[]]
    for start, end in pairwise(cuts):
        over = [span for span in spans if span.start <= start and end <= span.end]
        block = next((span for span in over if span.style == "pre"), None)
        if block is not None:
            if start == block.start:
                code = text[block.start : block.end]
                rows[-1:] = [*([rows[-1]] if rows[-1] else []), [_code(code, block.detail)]]
            continue
        piece = text[start:end]
        if piece.startswith("\n"):
            rows.append([])
            piece = piece[1:]
        if piece:
            rows[-1].append(_element(piece, over))
    return [row or [{"tag": "text", "text": ""}] for row in rows]


def _element(text: str, over: list[Span]) -> dict[str, Json]:
    link = next((span for span in over if span.style == "link"), None)
    element: dict[str, Json] = {"tag": "text", "text": text}
    if link is not None and link.detail.startswith(("https://", "http://")):
        element = {"tag": "a", "text": text, "href": link.detail}
    if styles := [_STYLES[span.style] for span in over if span.style in _STYLES]:
        element["style"] = list(dict.fromkeys(styles))
    return element


def _code(code: str, language: str) -> dict[str, Json]:
    return {"tag": "code_block", "language": language.upper() or "PLAIN_TEXT", "text": code}


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
