"""W3C trace context: form, refusal, determinism."""

import random

import pytest

from shared.tracing import TraceParent, child, new, of_envelope, parse

EXAMPLE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"  # the example of the W3C recommendation


def test_the_recommendations_example() -> None:
    found = parse(EXAMPLE)
    assert found == TraceParent("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", sampled=True)
    assert str(found) == EXAMPLE


@pytest.mark.parametrize(
    "text",
    [
        "", "00", EXAMPLE.upper(), EXAMPLE[:-1], EXAMPLE + "0", EXAMPLE + "-more", EXAMPLE + "\n", "ff" + EXAMPLE[2:],
        "00-" + "0" * 32 + "-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-" + "0" * 16 + "-01",
    ],
)  # fmt: skip
def test_what_is_no_trace_context(text: str) -> None:
    assert parse(text) is None


def test_a_later_version_may_say_more() -> None:
    assert parse("01" + EXAMPLE[2:] + "-what-comes") == parse(EXAMPLE)
    assert parse(EXAMPLE[:-2] + "00") == TraceParent(
        "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", sampled=False
    )


def test_made_from_a_random_source_or_an_id() -> None:
    assert new(random.Random(1).randbytes) == new(random.Random(1).randbytes)
    assert parse(str(new(lambda n: bytes(n)))) is not None
    assert of_envelope("01J") == of_envelope("01J")
    assert parse(str(of_envelope("01J"))) == of_envelope("01J")


def test_a_replay_is_a_new_trace_and_a_child_is_not() -> None:
    first = of_envelope("01J")
    assert of_envelope("01J", replay=1).trace_id != first.trace_id
    span = child(first, "dispatch")
    assert span.trace_id == first.trace_id
    assert span.span_id not in (first.span_id, child(first, "delivery").span_id)
