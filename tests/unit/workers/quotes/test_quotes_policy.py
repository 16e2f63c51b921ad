"""What a quote comes to under both policies, and the lookback's one answer or none (behaviour.md, section 3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.harness.port import HistoryLine
from shared.message import Lookup, QuotedAttachment, ReplyReference
from shared.outcome import Finish, Forward, Retry
from shared.reply import clean_reference
from workers.quotes.policy import Step, found_in_history, next_step, outcome, read_on, unresolved

AT = 1_788_281_382_163
WINDOW = 15_000
"""Fifteen seconds either way (behaviour.md, Lookback)."""


def quoted(
    content: str | None = None, *kinds: str, via: str | None = None, explicit: bool | None = None
) -> ReplyReference:
    lookup = Lookup.model_validate({"via": via, "chat_id": "anna", "quoted_at_ms": AT}) if via else None
    attachments = tuple(QuotedAttachment.model_validate({"kind": kind}) for kind in kinds)
    return ReplyReference(
        message_id="q1",
        content=content,
        attachments=attachments,
        lookup=lookup,
        explicit_text=bool(content) if explicit is None else explicit,
        source="payload" if content else "none",
    )


@pytest.mark.parametrize(
    ("reference", "recover", "evidence_only"),
    [
        pytest.param(None, "settled", "settled", id="F-6 no quote"),
        pytest.param(quoted("明天十点开会"), "settled", "settled", id="F-1 F-13 explicit text"),
        pytest.param(quoted(None, via="index"), "index", "refuse", id="F-2 F-4 F-10 metadata only, index"),
        pytest.param(quoted(None, via="history"), "history", "refuse", id="F-5 metadata only, lookback"),
        pytest.param(quoted(None, via="platform"), "platform", "refuse", id="lookup channel"),
        pytest.param(quoted("摘要", explicit=False), "settled", "refuse", id="F-11 a title alone is none"),
        pytest.param(quoted(None, "image"), "settled", "settled", id="F-7 a confirmed image"),
        pytest.param(quoted(None, "image", via="index"), "index", "settled", id="F-7 with an id"),
        pytest.param(quoted(None, "file"), "settled", "refuse", id="F-12 a file"),
        pytest.param(quoted(None, "audio"), "settled", "refuse", id="voice without a transcript"),
        pytest.param(quoted(None), "settled", "refuse", id="nothing at all"),
    ],
)
def test_f1_to_f14_the_next_step_under_both_policies(
    reference: ReplyReference | None, recover: Step, evidence_only: Step
) -> None:
    assert next_step(reference, "recover") == recover
    assert next_step(reference, "evidence_only") == evidence_only


def test_f14_whitespace_only_is_no_explicit_text_once_it_is_clean() -> None:
    reference = clean_reference(quoted(" \n\u200b ", explicit=True))
    assert next_step(reference, "evidence_only") == "refuse"
    result = outcome(reference, "evidence_only", admitted=True, verified=True)
    assert result == Finish("replied", "quoted_text_unavailable")


def test_f20_too_long_a_text_is_still_explicit() -> None:
    reference = clean_reference(quoted("字" * 8_001))
    assert next_step(reference, "evidence_only") == "settled"
    assert (len(reference.content or ""), reference.truncated) == (8_000, True)


REFUSED = quoted(None, via="index")


@pytest.mark.parametrize("reference", [None, quoted("明天十点开会"), REFUSED])
@pytest.mark.parametrize("policy", ["recover", "evidence_only"])
@pytest.mark.parametrize("verified", [True, False])
def test_z18_denied_comes_before_anything(reference: ReplyReference | None, policy: str, verified: bool) -> None:
    result = outcome(reference, policy, admitted=False, verified=verified)  # pyright: ignore[reportArgumentType]
    assert result == Finish("denied", "access")


@pytest.mark.parametrize("reference", [None, REFUSED])
def test_z16_an_unverified_source_comes_before_the_fixed_reply(reference: ReplyReference | None) -> None:
    result = outcome(reference, "evidence_only", admitted=True, verified=False)
    assert result == Retry("source-verification-failed")


def test_f2_f1_f6_the_outcome_of_each() -> None:
    assert outcome(REFUSED, "evidence_only", admitted=True, verified=True) == Finish(
        "replied", "quoted_text_unavailable"
    )
    assert outcome(quoted("a"), "evidence_only", admitted=True, verified=True) == Forward(
        "dispatch", "quoted_text_resolved"
    )
    assert outcome(None, "evidence_only", admitted=True, verified=True) == Forward("dispatch", "none")


def test_x13_an_unresolved_quote_runs_under_recover() -> None:
    assert isinstance(outcome(unresolved(REFUSED), "recover", admitted=True, verified=True), Forward)


def test_an_unresolved_quote_says_so_and_asks_nothing_more() -> None:
    reference = unresolved(REFUSED)
    assert (reference.lookup, reference.unavailable_reason, reference.source) == (None, "not-delivered", "none")
    assert reference.message_id == "q1"


def said(at_ms: int, text: str = "十点退潮", **changes: object) -> HistoryLine:
    return HistoryLine(**{"role": "assistant", "text": text, "at_ms": at_ms, **changes})  # pyright: ignore[reportArgumentType]


def asked(at_ms: int) -> HistoryLine:
    return HistoryLine("user", "何时退潮", at_ms, last_of_turn=False)


@pytest.mark.parametrize(
    ("apart", "found"), [(0, True), (15_000, True), (-15_000, True), (15_001, False), (-15_001, False)]
)
def test_q81_exactly_15_000_ms_is_in_and_15_001_is_out(apart: int, found: bool) -> None:
    assert found_in_history([said(AT + apart)], True, AT, WINDOW) == ("十点退潮" if found else None)


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        (AT - 60_000, AT - 20_000, False),
        (AT - 60_000, AT - 15_000, True),
        (AT - 60_000, AT - 15_001, False),
        (AT + 15_000, AT + 60_000, True),
        (AT + 15_001, AT + 60_000, False),
        (AT - 120_000, AT + 120_000, True),
    ],
)
def test_q81_a_turn_that_ran_around_the_quoted_time_counts(start: int, end: int, found: bool) -> None:
    line = said(AT + 200_000, turn_started_ms=start, turn_ended_ms=end)
    assert (found_in_history([line], True, AT, WINDOW) is not None) is found


def test_q85_two_candidates_are_none() -> None:
    assert found_in_history([said(AT + 5_000, "a"), said(AT - 5_000, "b")], True, AT, WINDOW) is None


@pytest.mark.parametrize("turn", ["failed", "aborted"])
def test_q86_only_a_completed_turn_counts(turn: str) -> None:
    assert found_in_history([said(AT, turn=turn)], True, AT, WINDOW) is None
    assert found_in_history([said(AT, turn=turn), said(AT + 1, "ok")], True, AT, WINDOW) == "ok"


def test_only_the_last_assistant_message_of_a_turn_counts() -> None:
    lines = [said(AT, "last"), said(AT - 1, "first", last_of_turn=False), asked(AT - 2)]
    assert found_in_history(lines, True, AT, WINDOW) == "last"


@pytest.mark.parametrize(
    ("oldest", "ended", "found"),
    [
        (AT - 15_000, False, False),
        (AT - 15_001, False, True),
        (AT - 15_000, True, True),
    ],
)
def test_q90_one_line_strictly_older_or_the_history_ended(oldest: int, ended: bool, found: bool) -> None:
    lines = [said(AT), asked(oldest)]
    assert (found_in_history(lines, ended, AT, WINDOW) is not None) is found
    assert read_on(lines, AT, WINDOW) is (oldest >= AT - WINDOW)


def test_q90_a_second_candidate_on_the_next_page_makes_it_none() -> None:
    first = [said(AT + 3_000, "a")]
    assert found_in_history(first, False, AT, WINDOW) is None
    assert read_on(first, AT, WINDOW)
    assert found_in_history([*first, said(AT - 3_000, "b"), asked(AT - 20_000)], False, AT, WINDOW) is None


LINES = st.lists(
    st.builds(
        HistoryLine,
        role=st.sampled_from(["user", "assistant"]),
        text=st.text(min_size=1, max_size=3),
        at_ms=st.integers(AT - 40_000, AT + 40_000),
        turn=st.sampled_from(["completed", "failed", "aborted"]),
        last_of_turn=st.booleans(),
    ),
    max_size=6,
)


@given(LINES, st.booleans())
def test_what_is_found_is_the_only_completed_reply_of_the_window(lines: list[HistoryLine], ended: bool) -> None:
    fit = [
        line
        for line in lines
        if (line.role, line.turn, line.last_of_turn) == ("assistant", "completed", True)
        and abs(line.at_ms - AT) <= 15_000
    ]
    certain = ended or min((line.at_ms for line in lines), default=AT) < AT - 15_000
    wanted = fit[0].text if len(fit) == 1 and certain else None
    assert found_in_history(lines, ended, AT, WINDOW) == wanted
