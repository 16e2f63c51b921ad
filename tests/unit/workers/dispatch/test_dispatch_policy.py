"""What becomes of a turn before, after and between (behaviour.md, section 5; design.md, section 4)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.outcome import Dead, Finish, Forward, Outcome, Retry
from shared.reasons import ALL
from workers.dispatch.policy import Before, Ended, after, before, recovered

GIVE_UP_S = 3600
ENDED: list[Ended] = [
    "answer", "empty", "draft", "transient", "refused", "broken", "timeout", "stop", "drain", "bad-resume",
]  # fmt: skip


@pytest.mark.parametrize(
    ("age_ms", "refusal", "outcome"),
    [
        (0, None, None),
        (3_600_000, None, None),
        (3_600_001, None, Dead("gave-up")),
        (0, "read-only-mode", Finish("skipped", "read-only-mode")),
        (3_600_001, "read-only-mode", Finish("skipped", "read-only-mode")),
    ],
)
def test_r20_r22_what_forbids_asking(age_ms: int, refusal: str | None, outcome: Outcome | None) -> None:
    assert before(Before(1_000_000_000 + age_ms, 1_000_000_000, GIVE_UP_S, refusal)) == outcome


def ended(how: Ended, **changes: Any) -> Outcome:
    facts: dict[str, Any] = {
        "idempotent": False,
        "probing": False,
        "after_s": None,
        "open_s": 15,
        "error": "Kind: words",
    }
    return after(how, **{**facts, **changes})


@pytest.mark.parametrize(
    ("how", "outcome"),
    [
        ("answer", Forward("delivery", "answered")),
        ("empty", Finish("answered", "empty")),
        ("draft", Finish("held", "draft")),
        ("transient", Retry("harness-transient")),
        ("broken", Dead("effect-unknown", "Kind: words")),
        ("refused", Dead("harness-refused", "Kind: words")),
        ("bad-resume", Dead("harness-refused", "Kind: words")),
        ("timeout", Dead("turn-timeout", "Kind: words")),
        ("stop", Finish("cancelled", "stop")),
        ("drain", Retry("handed-back", 0, counts=False)),
    ],
)
def test_the_end_of_a_try(how: Ended, outcome: Outcome) -> None:
    assert ended(how) == outcome


def test_what_the_harness_asked_for_wins() -> None:
    assert ended("transient", after_s=7.5) == Retry("harness-transient", 7.5)


def test_broken_is_repeated_only_by_an_idempotent_harness() -> None:
    assert ended("broken", idempotent=True) == Retry("harness-transient")


@pytest.mark.parametrize("how", ["transient", "broken"])
def test_p22_a_failed_probe_uses_up_no_attempt(how: Ended) -> None:
    outcome = ended(how, probing=True, idempotent=True, after_s=1)
    assert outcome == Retry("harness-breaker", 15, counts=False)


def test_a_broken_probe_that_may_have_had_an_effect_is_not_repeated() -> None:
    assert ended("broken", probing=True) == Dead("effect-unknown", "Kind: words")


TAKEN_OVER = Retry("taken-over", 0, counts=False)
UNKNOWN = Dead("effect-unknown", "the worker died while the harness had the turn")
STOPPED = Finish("cancelled", "stop")


@pytest.mark.parametrize(
    ("url", "idempotent", "cancelled", "outcome"),
    [
        ("", False, False, UNKNOWN),
        ("", True, False, TAKEN_OVER),
        ("https://h/turns/1", False, False, TAKEN_OVER),
        ("https://h/turns/1", True, False, TAKEN_OVER),
        ("", False, True, STOPPED),
        ("", True, True, STOPPED),
        ("https://h/turns/1", True, True, STOPPED),
    ],
)
def test_a_running_turn_whose_worker_died(url: str, idempotent: bool, cancelled: bool, outcome: Outcome) -> None:
    assert recovered(url=url, idempotent=idempotent, cancelled=cancelled) == outcome


@given(st.sampled_from(ENDED), st.booleans(), st.booleans(), st.none() | st.floats(0, 1e6))
def test_every_end_has_a_reason_of_the_closed_list(how: Ended, idem: bool, probe: bool, after_s: float | None) -> None:
    assert ended(how, idempotent=idem, probing=probe, after_s=after_s).reason in ALL


@given(st.booleans(), st.booleans(), st.booleans())
def test_a_turn_that_may_have_had_an_effect_is_never_repeated_unasked(idem: bool, url: bool, stop: bool) -> None:
    outcome = recovered(url="u" if url else "", idempotent=idem, cancelled=stop)
    assert not isinstance(outcome, Retry) or idem or url
