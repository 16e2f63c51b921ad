"""JSON of the wire: untrusted one is parsed only after its depth was measured, without recursion."""

import json
import re
from typing import Final, NoReturn

from shared.channels.port import Json
from shared.errors import Malformed

MAX_DEPTH: Final = 64
"""Deepest nesting of objects and arrays. The deepest golden event has 13 levels; Python's parser recurses, and so does
whatever walks the result."""

# Strings are skipped whole, also an unterminated last one; the possessive loop never backtracks, so time is linear.
_TOKENS: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


def parse_json(raw: bytes) -> Json:
    """The value that `raw` holds. Raises Malformed: not UTF-8, not JSON, deeper than `MAX_DEPTH`, NaN or Infinity."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed("the body is not UTF-8") from None
    check_depth(text)
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        # The parser's own text may quote the input: it is dropped.
        raise Malformed("the body is not JSON") from None


def check_depth(text: str) -> None:
    """Raises Malformed when brackets are nested deeper than `MAX_DEPTH`."""
    depth = 0
    for token in _TOKENS.finditer(text):
        first = token[0][0]
        if first in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise Malformed(f"the body is nested deeper than {MAX_DEPTH} levels")
        elif first != '"':
            depth -= 1


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def write_json(value: Json) -> bytes:
    """`value` as it goes over the wire, lone halves of surrogate pairs replaced; whoever signs a body signs this."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
