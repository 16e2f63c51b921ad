"""Depth is measured exactly, in linear time, and never trips over what is inside strings."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.channels.body import MAX_DEPTH, parse_json
from shared.errors import Malformed


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


def test_64_levels_are_taken_and_65_are_not() -> None:
    assert MAX_DEPTH == 64
    parse_json(nested(64))
    with pytest.raises(Malformed, match="64"):
        parse_json(nested(65))


def test_width_is_no_depth() -> None:
    assert len(parse_json(b"[" + b",".join([b'{"a":[1]}'] * 5000) + b"]")) == 5000


@pytest.mark.parametrize("text", ["[" * 100, '"' + "[" * 100, "\\" + "[" * 100, '\\"' + "{" * 100, "\\\\" + "[" * 99])
def test_brackets_in_strings_do_not_count(text: str) -> None:
    assert parse_json(json.dumps({"text": text}).encode()) == {"text": text}


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"nul", b"\xff", b'"\\', b"NaN", b"-Infinity", b'{"a" 1}', b"9" * 5000, b"\xef\xbb\xbf{}"]
)
def test_what_is_no_json_is_malformed_without_quoting_it(raw: bytes) -> None:
    with pytest.raises(Malformed) as caught:
        parse_json(raw)
    assert str(caught.value) in ("the body is not JSON", "the body is not UTF-8")
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("raw", [b'"' * 500_001, b'\\"' * 250_000, b'"' + b'\\"' * 250_000, b"\\" * 500_000])
def test_hostile_quotes_cost_linear_time(raw: bytes) -> None:
    started = time.perf_counter()
    with pytest.raises(Malformed):
        parse_json(raw)
    assert time.perf_counter() - started < 5


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=30,
)


@given(VALUES)
def test_every_flat_enough_value_comes_through(value: object) -> None:
    assert parse_json(json.dumps(value).encode("utf-8", "surrogatepass")) == value


@given(st.binary(max_size=200) | st.text(alphabet='[]{}",:\\a1 ', max_size=60).map(str.encode))
def test_nothing_but_malformed_is_ever_raised(raw: bytes) -> None:
    try:
        parse_json(raw)
    except Malformed:
        return
