"""May it be sent, which part comes next, and what a send comes to (behaviour.md, section 5)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.channels.port import Delivery, Limits
from shared.outcome import Dead, Finish, Outcome, Park, Retry
from workers.delivery.policy import LedgerState, SendFacts, after, can_send, next_part, waited_too_long, window_closed

PAUSED = Park("pause", "paused")
READ_ONLY = Finish("skipped", "read-only-mode")
SAFE = Finish("skipped", "safe-mode")
DENIED = Finish("denied", "access")


def facts(*on: str, admitted: bool = True, exempt: bool = False) -> SendFacts:
    return SendFacts("paused" in on, "read_only" in on, "safe_mode" in on, admitted, exempt)


@pytest.mark.parametrize(
    ("given_facts", "refusal"),
    [
        pytest.param(facts(), None, id="nothing is on"),
        pytest.param(facts("paused", "read_only"), PAUSED, id="R-9"),
        pytest.param(facts("paused", "read_only", "safe_mode", admitted=False), PAUSED, id="R-9 whatever else"),
        pytest.param(facts("safe_mode", "read_only"), READ_ONLY, id="R-10"),
        pytest.param(facts("read_only", admitted=False), READ_ONLY, id="R-8"),
        pytest.param(facts("safe_mode", admitted=False), SAFE, id="safe mode"),
        pytest.param(facts(admitted=False), DENIED, id="Z-19"),
        pytest.param(facts("read_only", "safe_mode", exempt=True), None, id="R-5"),
        pytest.param(facts("paused", exempt=True), PAUSED, id="a pause stops mock too"),
        pytest.param(facts("read_only", admitted=False, exempt=True), DENIED, id="Z-19 on mock"),
    ],
)
def test_r8_r9_r10_r5_the_order_of_reasons(given_facts: SendFacts, refusal: Outcome | None) -> None:
    assert can_send(given_facts) == refusal


@given(st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_r6_r16_what_is_not_exempt_never_goes_out_in_read_only_or_safe_mode(
    paused: bool, read_only: bool, safe_mode: bool, admitted: bool
) -> None:
    refusal = can_send(SendFacts(paused, read_only, safe_mode, admitted))
    assert (refusal is None) is (admitted and not (paused or read_only or safe_mode))


@pytest.mark.parametrize(
    ("ledger", "parts", "wanted"),
    [
        ({}, 0, "done"),
        ({}, 2, 0),
        ({0: "sent"}, 2, 1),
        ({0: "sent", 1: "sent"}, 2, "done"),
        ({0: "not-sent"}, 2, 0),
        ({0: "sent", 1: "not-sent"}, 2, 1),
        ({0: "intent"}, 2, "unknown"),
        ({0: "sent", 1: "unknown"}, 2, "unknown"),
        ({0: "sent", 1: "sent", 2: "unknown"}, 2, "done"),
    ],
)
def test_r25_r26_r48_the_next_part(ledger: dict[int, LedgerState], parts: int, wanted: int | str) -> None:
    assert next_part(ledger, parts) == wanted


STATES = st.sampled_from(["intent", "sent", "not-sent", "unknown"])


@given(st.dictionaries(st.integers(0, 5), STATES), st.integers(0, 6))
def test_r45_a_part_that_was_sent_or_is_unknown_is_never_the_next(ledger: dict[int, LedgerState], parts: int) -> None:
    wanted = next_part(ledger, parts)
    if isinstance(wanted, int):
        assert ledger.get(wanted) in (None, "not-sent")
        assert all(ledger.get(n) == "sent" for n in range(wanted))
    elif wanted == "done":
        assert all(ledger.get(n) == "sent" for n in range(parts))


@pytest.mark.parametrize(
    ("delivery", "outcome"),
    [
        pytest.param(Delivery("sent", ("9",)), None, id="sent: go on"),
        pytest.param(Delivery("unknown", reason="timeout"), Dead("delivery-unknown", "timeout"), id="R-45"),
        pytest.param(Delivery("unknown", reason="5xx"), Dead("delivery-unknown", "5xx"), id="R-47 5xx"),
        pytest.param(Delivery("not-sent", reason="http-403"), Dead("delivery-refused", "http-403"), id="R-46 R-47 4xx"),
        pytest.param(Delivery("not-sent", reason="connect", retry=True), Retry("not-connected"), id="no connection"),
        pytest.param(
            Delivery("not-sent", retry=True, retry_after_s=3), Retry("rate-limited", 3, counts=False), id="429"
        ),
        pytest.param(
            Delivery("not-sent", retry=True, retry_after_s=0), Retry("rate-limited", 0, counts=False), id="429, at once"
        ),
        pytest.param(Delivery("not-sent", reason="read-only-mode"), READ_ONLY, id="R-7"),
        pytest.param(Delivery("not-sent", reason="safe-mode"), SAFE, id="safe mode at the channel"),
        pytest.param(Delivery("not-sent", reason="window-closed"), Finish("skipped", "window-closed"), id="window"),
    ],
)
def test_r45_r46_r47_what_a_send_comes_to(delivery: Delivery, outcome: Outcome | None) -> None:
    assert after(delivery, 0) == outcome


def test_what_was_said_before_the_window_closed_stays_an_answer() -> None:
    assert after(Delivery("not-sent", reason="window-closed"), 1) == Finish("answered", "window-closed")


@pytest.mark.parametrize(
    ("window_s", "replies", "age_ms", "number", "outcome"),
    [
        pytest.param(0, 0, 10**12, 99, None, id="no bound"),
        pytest.param(300, 0, 300_000, 0, None, id="just in time"),
        pytest.param(300, 0, 300_001, 0, Finish("skipped", "window-closed"), id="too late"),
        pytest.param(300, 0, 300_001, 2, Finish("answered", "window-closed"), id="too late for the rest"),
        pytest.param(300, 5, 0, 4, None, id="the last of five"),
        pytest.param(300, 5, 0, 5, Finish("answered", "window-closed"), id="a sixth"),
    ],
)
def test_reply_windows_and_counts(
    window_s: int, replies: int, age_ms: int, number: int, outcome: Outcome | None
) -> None:
    limits = Limits(100, "code_points", (1, 1.0), (1, 1.0), 1, reply_window_s=window_s, replies=replies)
    assert window_closed(limits, 1_790_000_000_000, 1_790_000_000_000 + age_ms, number) == outcome


@given(st.booleans(), st.none() | st.floats(0, 60), st.text(max_size=5))
def test_r45_unknown_is_never_tried_again(retry: bool, after_s: float | None, reason: str) -> None:
    assert isinstance(after(Delivery("unknown", (), reason, retry, after_s), 0), Dead)


@pytest.mark.parametrize(("age_ms", "old"), [(3_600_000, False), (3_600_001, True)])
def test_a_record_older_than_give_up_s_has_waited_too_long(age_ms: int, old: bool) -> None:
    assert waited_too_long(5_000_000 + age_ms, 5_000_000, 3600) is old
