"""Reading a platform's JSON, in which any value may be missing, of another type, or hostile. Pure.

A wrong type reads as absent; only what a message cannot do without raises `Malformed`. Strings come out without lone
halves of surrogate pairs, so everything behind them can be encoded.
"""

from typing import cast

from shared.channels.port import Json
from shared.errors import Malformed

LARGEST = 2**63 - 1
"""Beyond this no platform's number is an id or a time; Python would also refuse to print much longer ones."""


def whole(text: str) -> str:
    """`text` with pairs of surrogates joined and lone ones replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def map_of(value: object) -> dict[str, Json]:
    """The object, or an empty one."""
    return cast("dict[str, Json]", value) if isinstance(value, dict) else {}


def maps_of(value: object, most: int = 1000) -> list[dict[str, Json]]:
    """The objects of a list, at most `most` of them; what is no object is left out."""
    items = cast("list[object]", value)[:most] if isinstance(value, list) else []
    return [cast("dict[str, Json]", item) for item in items if isinstance(item, dict)]


def text_of(value: object) -> str:
    """The string, or an empty one."""
    return whole(value) if isinstance(value, str) else ""


def int_of(value: object) -> int | None:
    """The whole number within 64 bits, or None."""
    if isinstance(value, int) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST:
        return value
    return None


def id_of(value: object) -> str | None:
    """An id as text, whether the platform writes it as a string or a number; None when there is none."""
    if isinstance(value, str):
        return whole(value) or None
    number = int_of(value)
    return None if number is None else str(number)


def seconds_as_ms(value: object) -> int | None:
    """A time in Unix seconds as milliseconds; 0 and less is none."""
    number = int_of(value)
    return number * 1000 if number is not None and 0 < number <= LARGEST // 1000 else None


def required_map(value: object, what: str) -> dict[str, Json]:
    """The object. Raises Malformed, which names `what`, never the value."""
    if not isinstance(value, dict):
        raise Malformed(f"{what} is not an object")
    return cast("dict[str, Json]", value)


def required_id(value: object, what: str) -> str:
    """The id as text. Raises Malformed, which names `what`, never the value."""
    found = id_of(value)
    if found is None:
        raise Malformed(f"{what} is missing")
    return found
