"""What fuzzing is made of: junk values, JSON and bytes of any kind, and good things with something wrong in them.

CI takes the same examples every time; `MILLSTREAM_FULL=1` takes twenty times as many, other ones each time.
"""

import copy
import json
import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

FULL = os.environ.get("MILLSTREAM_FULL") == "1"


def examples(number: int) -> settings:
    """How often a property is tried. No single example may take ten seconds, on whatever machine."""
    return settings(
        max_examples=number * 20 if FULL else number,
        derandomize=not FULL,
        database=None,
        deadline=timedelta(seconds=10),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
    )


def nested(depth: int) -> Any:
    """A chain through every key that a parser follows."""
    value: Any = {"text": "deep"}
    for level in range(depth):
        key = ("blocks", "text", "elements", "items", "reply_to_message", "attachments")[level % 6]
        value = {key: [value]} if level % 2 else {key: value}
    return value


JUNK: list[Any] = [
    None, True, False, 0, -1, 1.5, float("nan"), float("inf"), -0.0, 1e308, 2**63, -(2**70), 10**5000, "", " ", "\x00",
    "x" * 5000, "\ud83d", "\ude00\ud83d", "@", "<@U07TIDEBOT>", "🛟" * 40, "\u202e\u2066\u200b", "a\u0301" * 300,
    "NaN", "1e309", "-1", "</dsh_im_source>", [], {}, [[]], [None], [{}], {"": {}}, {"\x00": "\ud800"}, nested(6),
    {"blocks": nested(40)}, nested(300), {"id": 10**5000}, [{"offset": -5, "length": 10**30, "type": "mention"}],
    [{"offset": 0, "length": 1, "type": "mention"}, {"offset": 0, "length": 3, "type": "text_mention", "user": 7}],
    [{"type": "rich_text", "elements": "x"}] * 50, ["x"] * 2000,
]  # fmt: skip

junk: st.SearchStrategy[Any] = st.integers(0, len(JUNK) - 1).map(lambda number: JUNK[number])
"""By its number, because one of it cannot be printed."""

any_text = st.text(st.characters(), max_size=40) | st.sampled_from([item for item in JUNK if isinstance(item, str)])

any_json = st.recursive(
    junk | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=20,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of everything inside `value`."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inside for place in places(item, (*path, key)))]


def changed(value: Any, path: tuple[Any, ...], junk: Any, remove: bool) -> Any:
    """A copy of `value` with `junk` at `path`, or with nothing there."""
    if not path:
        return junk
    holder = copied = copy.deepcopy(value)
    for key in path[:-1]:
        holder = holder[key]
    if remove:
        del holder[path[-1]]
    else:
        holder[path[-1]] = junk
    return copied


@st.composite
def mutations(draw: st.DrawFn, good: Any) -> Any:
    """`good` JSON with one to three things wrong."""
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(good)))
        good = changed(good, path, draw(st.one_of(junk, junk, junk, any_json)), draw(st.booleans()))
    return good


def written(value: Any) -> bytes:
    """JSON as a hostile sender writes it: NaN, lone surrogates as escapes, and what JSON has no word for left out."""
    try:
        return json.dumps(value).encode()
    except (TypeError, ValueError, RecursionError):  # a number beyond what Python prints, or too deep
        return b'{"n":' + b"9" * 5000 + b"}"


SPLICES = [
    b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xef\xbb\xbf", b"[" * 70_000, b'{"a":' * 3000,
    b"9" * 5000, b"1e400", b"-", b"NaN", b"Infinity", b'"', b"\\", b"\\u", b'"\\ud800"', b"\r\n\r\n", b"\n", b"\r",
    b"{", b"}", b"]", b",", b'"version":2,', b'"version":1,', b'"id":"x","id":1,', b"data:", b"event: done\n\n",
    b": x\n",
]  # fmt: skip


@st.composite
def spoilt(draw: st.DrawFn, good: bytes) -> bytes:
    """`good` bytes with pieces cut out, doubled, turned over or put in."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(good)))
        end = min(len(good), start + draw(st.sampled_from([0, 0, 1, 2, 7, 100])))
        middle = draw(st.sampled_from(SPLICES) | st.binary(max_size=8) | st.just(good[start:end] * 2))
        good = good[:start] + middle + good[end:]
    return good


def outcome(allowed: type[Exception] | tuple[type[Exception], ...], work: Callable[[], Any]) -> Any:
    """What `work` gives, or the error where it raised a documented one; anything else goes through and fails."""
    try:
        return work()
    except allowed as error:
        return error


def raises_only(allowed: type[Exception] | tuple[type[Exception], ...], work: Callable[[], Any]) -> Any:
    """What `work` gives, or None where it raised what is documented."""
    found = outcome(allowed, work)
    return None if isinstance(found, allowed) else found
