"""Sessions: bindings, bounds, what the model is shown and what lookback reads. Over a real server."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from shared.harness.port import HistoryLine
from shared.redis.embedded import Embedded
from shared.sessions import Mark, SessionLimits, Sessions, Status, overflow, tokens_of
from tests.platforms.harness_server import SteppedClock

DAY_MS = 86_400_000
NOW_MS = 1_788_280_000_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    folder: Path = tmp_path_factory.mktemp("redis")
    with Embedded.start(folder, durable=False) as running:
        yield running


@pytest.fixture(params=[True, False], ids=["text", "bytes"])
def client(server: Embedded, request: pytest.FixtureRequest) -> Iterator[redis.Redis]:
    made = redis.Redis.from_url(server.url, decode_responses=request.param)
    made.flushdb()
    yield made
    made.close()


@pytest.fixture
def sessions(client: redis.Redis) -> Sessions:
    return Sessions(client, SteppedClock(NOW_MS), "t:")


def add(sessions: Sessions, number: int, status: Status = "completed", **limits: int) -> bool:
    """Turn `number`: asked at second 10n, answered at 10n + 4."""
    start_ms = NOW_MS + number * 10_000
    return sessions.append_turn(
        "s",
        f"t{number}",
        f"q{number}",
        f"a{number}",
        start_ms,
        start_ms + 4_000,
        status,
        limits=SessionLimits(**limits),
    )


def shown(sessions: Sessions, **limits: int) -> list[str]:
    return [turn.id for turn in sessions.turns("s", NOW_MS + 200_000, SessionLimits(**limits))]


def test_a_lane_knows_the_session_that_it_is_bound_to(sessions: Sessions) -> None:
    assert sessions.bound("lane") is None
    sessions.bind("lane", "one", NOW_MS)
    assert sessions.bound("lane") == "one"
    assert sessions.bound("other") is None


def test_unbinding_deletes_no_session(sessions: Sessions) -> None:
    sessions.bind("lane", "s", NOW_MS)
    add(sessions, 1)
    sessions.unbind("lane")
    assert sessions.bound("lane") is None
    assert shown(sessions) == ["t1"]


def test_a_repeated_turn_is_there_once(sessions: Sessions) -> None:
    assert add(sessions, 1)
    assert not add(sessions, 1)
    assert shown(sessions) == ["t1"]
    assert len(sessions.page("s", NOW_MS + DAY_MS, 100).lines) == 2


@pytest.mark.parametrize("first", ["failed", "aborted"])
def test_a_later_completion_replaces_a_failed_end(sessions: Sessions, first: Status) -> None:
    assert add(sessions, 1, first)
    assert shown(sessions) == []
    assert add(sessions, 1, "completed")
    assert not add(sessions, 1, first)
    assert {line.turn for line in sessions.page("s", NOW_MS + DAY_MS, 100).lines} == {"completed"}


def test_the_model_sees_completed_turns_oldest_first(sessions: Sessions) -> None:
    for number, status in enumerate(("completed", "failed", "completed", "aborted")):
        add(sessions, number, status)
    turns = sessions.turns("s", NOW_MS + 200_000)
    assert [(t.id, t.prompt, t.answer) for t in turns] == [("t0", "q0", "a0"), ("t2", "q2", "a2")]


def test_messages_are_bounded_and_the_newest_stay(sessions: Sessions) -> None:
    for number in range(5):
        add(sessions, number, messages=6)
    assert shown(sessions) == ["t2", "t3", "t4"]
    assert len(sessions.page("s", NOW_MS + DAY_MS, 100).lines) == 6


def test_a_smaller_limit_counts_at_once(sessions: Sessions) -> None:
    for number in range(5):
        add(sessions, number)
    assert shown(sessions, messages=2) == ["t4"]
    assert shown(sessions, tokens=4) == ["t3", "t4"]


def test_texts_survive_as_they_are(sessions: Sessions) -> None:
    prompt, answer = '中文 😀 "\\\n\x00<dsh_im_', "é\u2028"
    sessions.append_turn("s", "t", prompt, answer, NOW_MS, NOW_MS + 1)
    (turn,) = sessions.turns("s", NOW_MS + 2)
    assert (turn.prompt, turn.answer) == (prompt, answer)


def test_nothing_of_a_session_is_kept_for_ever(sessions: Sessions, client: redis.Redis) -> None:
    sessions.bind("lane", "s", NOW_MS)
    add(sessions, 1)
    keys = list(client.scan_iter("*"))
    assert len(keys) == 4
    assert all(0 < int(client.pttl(key)) <= 60 * DAY_MS for key in keys)


def test_q20_the_first_turn_gives_the_title(sessions: Sessions) -> None:
    assert sessions.title("s") == ""
    sessions.append_turn("s", "t1", "q", "a", NOW_MS, NOW_MS, title="最终的数字是多少？")
    sessions.append_turn("s", "t2", "q", "a", NOW_MS, NOW_MS, title="another")
    assert sessions.title("s") == "最终的数字是多少？"


def test_skipped_turns_stay_readable_for_lookback(sessions: Sessions) -> None:
    for number in range(4):
        add(sessions, number)
    sessions.skip_until("s", NOW_MS + 10_000 + 4_000)
    assert shown(sessions) == ["t2", "t3"]
    assert len(sessions.page("s", NOW_MS + DAY_MS, 100).lines) == 8


def test_a_page_is_newest_first_and_frames_its_turns(sessions: Sessions) -> None:
    add(sessions, 1)
    sessions.append_turn("s", "t2", "q2", "", NOW_MS + 20_000, NOW_MS + 21_000, "aborted")
    page = sessions.page("s", NOW_MS + DAY_MS, 100)
    assert page.lines == (
        HistoryLine("user", "q2", NOW_MS + 20_000, "aborted", NOW_MS + 20_000, NOW_MS + 21_000, last_of_turn=True),
        HistoryLine("assistant", "a1", NOW_MS + 14_000, "completed", NOW_MS + 10_000, NOW_MS + 14_000),
        HistoryLine("user", "q1", NOW_MS + 10_000, "completed", NOW_MS + 10_000, NOW_MS + 14_000, last_of_turn=False),
    )
    assert not page.more


def test_q83_pages_follow_each_other_without_gap_or_repetition(sessions: Sessions) -> None:
    for number in range(5):
        add(sessions, number)
    texts: list[str] = []
    before_ms, more = NOW_MS + DAY_MS, True
    while more:
        page = sessions.page("s", before_ms, 3)
        assert 0 < len(page.lines) <= 3
        texts += [line.text for line in page.lines]
        before_ms, more = page.lines[-1].at_ms, page.more
    assert texts == ["a4", "q4", "a3", "q3", "a2", "q2", "a1", "q1", "a0", "q0"]


def test_lines_of_one_millisecond_are_not_torn_apart(sessions: Sessions) -> None:
    sessions.append_turn("s", "t1", "q1", "a1", NOW_MS, NOW_MS)
    sessions.append_turn("s", "t2", "q2", "a2", NOW_MS + 1, NOW_MS + 2)
    first = sessions.page("s", NOW_MS + DAY_MS, 3)
    assert [line.text for line in first.lines] == ["a2", "q2"]
    assert first.more
    second = sessions.page("s", first.lines[-1].at_ms, 3)
    assert [line.text for line in second.lines] == ["a1", "q1"]
    assert not second.more


def test_q88_an_unknown_session_has_an_empty_page(sessions: Sessions) -> None:
    assert sessions.page("nobody", NOW_MS, 100).lines == ()
    assert not sessions.page("nobody", NOW_MS, 100).more


def mark(ended_ms: int, messages: int = 2, tokens: int = 1, size: int = 1) -> Mark:
    return Mark(ended_ms - 1, ended_ms, "ua"[:messages], tokens, size, "completed")


def test_age_ends_a_turn_but_the_newest() -> None:
    limits = SessionLimits(age_ms=1_000)
    marks = {"old": mark(1_000), "edge": mark(2_000), "new": mark(3_000)}
    assert overflow(marks, limits, 3_000) == ["old"]
    assert overflow(marks, limits, 99_000) == ["edge", "old"]


def test_size_and_tokens_end_the_oldest() -> None:
    marks = {"a": mark(1, size=600, tokens=6), "b": mark(2, size=600, tokens=6), "c": mark(3, size=10, tokens=1)}
    assert overflow(marks, SessionLimits(size_bytes=1_000), 3) == ["a"]
    assert overflow(marks, SessionLimits(tokens=5), 3) == ["b", "a"]
    assert overflow(marks, SessionLimits(tokens=0), 3) == []


@given(
    st.dictionaries(st.text(), st.builds(mark, st.integers(0, 99), st.integers(1, 2), st.integers(0, 9)), min_size=1),
    st.integers(1, 9),
    st.integers(0, 20),
)
def test_what_stays_keeps_the_limits(marks: dict[str, Mark], messages: int, tokens: int) -> None:
    gone = overflow(marks, SessionLimits(messages=messages, tokens=tokens), 99)
    kept = [mark for turn, mark in marks.items() if turn not in gone]
    assert kept
    assert max(m.ended_ms for m in kept) == max(m.ended_ms for m in marks.values())
    if len(kept) > 1:
        assert sum(len(m.roles) for m in kept) <= messages
        assert not tokens or sum(m.tokens for m in kept) <= tokens


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 2), ("中文", 2), ("😀", 2)])
def test_the_token_estimate(text: str, tokens: int) -> None:
    assert tokens_of(text) == tokens


def test_a_mark_reads_back() -> None:
    assert Mark.decode(mark(5).encode()) == mark(5)
    with pytest.raises(ValueError, match="status"):
        Mark.decode("1:2:ua:1:1:odd")
