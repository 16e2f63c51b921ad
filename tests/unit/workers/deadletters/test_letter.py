"""A dead letter as it is read, filtered and judged (operations.md, Dead letters). Pure."""

from typing import Any

import pytest

from workers.deadletters.model import Letter, why_not

STORED = {
    "stage": "delivery", "reason": "delivery-refused", "error": "http-403", "channel": "mock", "account": "demo",
    "attempts": "2", "first_failed_at": "5", "dead_at": "9", "replays": "1", "status": "dead", "worker": "w",
    "out": "E1-5",
}  # fmt: skip


def letter(**changes: Any) -> Letter:
    return Letter.from_hash("E1", {**STORED, **{k: str(v) for k, v in changes.items()}})


def test_a_letter_is_read_from_its_hash() -> None:
    assert letter() == Letter(
        "E1", "delivery", "delivery-refused", "http-403", "mock", "demo", 2, 5, 9, 1, "dead", "w", "E1-5"
    )


def test_what_is_missing_is_empty_or_zero() -> None:
    assert Letter.from_hash("E1", {}) == Letter("E1", "", "", "", "", "", 0, 0, 0, 0, "", "", "")


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        ({}, True),
        ({"stage": "delivery"}, True),
        ({"stage": "dispatch"}, False),
        ({"reason": "delivery-refused", "channel": "mock", "account": "demo"}, True),
        ({"reason": "delivery-refused", "channel": "slack"}, False),
        ({"account": "dem"}, False),
    ],
)
def test_every_given_criterion_must_equal(wanted: dict[str, str], fits: bool) -> None:
    assert letter().fits(**wanted) is fits


@pytest.mark.parametrize("reason", ["effect-unknown", "turn-timeout", "delivery-unknown"])
def test_x8_what_may_have_had_an_effect_needs_an_explicit_again(reason: str) -> None:
    refusal = why_not(letter(reason=reason, replays=0), again=False, max_replays=5)
    assert refusal is not None
    assert "--again" in refusal
    assert why_not(letter(reason=reason, replays=0), again=True, max_replays=5) is None


@pytest.mark.parametrize(("replays", "allowed"), [(0, True), (4, True), (5, False), (6, False)])
def test_a_letter_is_replayed_at_most_max_replays_times(replays: int, allowed: bool) -> None:
    refusal = why_not(letter(replays=replays), again=True, max_replays=5)
    assert (refusal is None) is allowed
    assert allowed or "max_replays" in str(refusal)


@pytest.mark.parametrize("again", [False, True])
def test_poison_is_never_replayed(again: bool) -> None:
    assert why_not(letter(reason="poison"), again=again, max_replays=5) is not None


@pytest.mark.parametrize(
    "reason", ["harness-refused", "attempts-exhausted", "crash-loop", "gave-up", "delivery-refused"]
)
def test_what_had_no_effect_needs_no_again(reason: str) -> None:
    assert why_not(letter(reason=reason), again=False, max_replays=5) is None
