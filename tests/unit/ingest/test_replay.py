"""Saved events: bad lines are told and passed, good ones are published in order at the asked rate."""

import asyncio
import json
import random
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from ingest.port import Accepted, Overloaded, Unavailable
from ingest.replay import MAX_LINE, BadLine, Replay, SavedEvent, Summary, read_events
from shared import channels
from shared.message import Message
from shared.settings import RetrySettings, from_mapping

T = TypeVar("T")
SETTINGS = from_mapping({"accounts": [{"id": "demo", "channel": "mock"}, {"id": "later", "channel": "qq"}]})
NOW_MS = 1_790_000_111_000


class SteppingClock:
    """Time passes only by sleeping."""

    def __init__(self) -> None:
        self.passed = 0.0

    def now_ms(self) -> int:
        return NOW_MS + round(self.passed * 1000)

    def monotonic(self) -> float:
        return self.passed

    async def sleep(self, seconds: float) -> None:
        self.passed += seconds

    async def wait_for(self, work: Awaitable[T], seconds: float) -> T:
        return await asyncio.wait_for(work, seconds)


class ListPublisher:
    """Keeps (message id, received at); raises what stands in `troubles` first."""

    def __init__(self, *troubles: Overloaded | Unavailable) -> None:
        self.taken = list[tuple[str, int]]()
        self.troubles = list(troubles)

    async def accept(self, messages: Sequence[Message], received_at_ms: int) -> Accepted:
        if self.troubles:
            raise self.troubles.pop(0)
        self.taken += [(m.message_id, received_at_ms) for m in messages]
        return Accepted(tuple(f"id-{m.message_id}" for m in messages))


def event(message_id: str) -> dict[str, str]:
    return {"message_id": message_id, "chat": "harbour", "chat_type": "private", "sender": "mila", "text": "Low water?"}


def saved(message_id: str, **more: object) -> str:
    return json.dumps({"account": "demo", "event": event(message_id), **more})


def write(folder: Path, *lines: str) -> Path:
    path = folder / "events.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def replay(path: Path, publisher: ListPublisher, rate: float = 0, clock: SteppingClock | None = None) -> Summary:
    used = Replay(
        SETTINGS.account, channels.channel, publisher, clock or SteppingClock(), RetrySettings(), random.Random(1)
    )
    return asyncio.run(used.run(path, rate))


def test_lines_are_read_in_order_with_their_place(tmp_path: Path) -> None:
    path = write(tmp_path, saved("m1", headers={"x": "y"}, at=5), "", saved("m2"))
    first, second = read_events(path)
    assert first == SavedEvent(f"{path}:1", "demo", event("m1"), {"x": "y"}, 5)
    assert isinstance(second, SavedEvent)
    assert (second.where, second.at_ms) == (f"{path}:3", None)


@pytest.mark.parametrize(
    "line",
    ["{", "7", "[" * 5000, '{"account": "demo"}', '{"account": 1, "event": {}}', '{"account": "", "event": {}}',
     '{"account": "demo", "event": {}, "at": "now"}', '{"account": "demo", "event": {}, "at": -1}',
     '{"account": "demo", "event": {}, "tide": 1}', '{"account": "demo", "event": {}, "headers": {"a": 1}}'],
)  # fmt: skip
def test_a_malformed_line_is_told_by_place_and_the_others_go_on(tmp_path: Path, line: str) -> None:
    path = write(tmp_path, saved("m1"), line, saved("m2"))
    publisher = ListPublisher()
    summary = replay(path, publisher)
    assert [m for m, _ in publisher.taken] == ["m1", "m2"]
    assert [bad.where for bad in summary.bad] == [f"{path}:2"]
    assert str(summary.bad[0]).startswith(f"{path}:2: ")


def test_a_line_that_is_too_long_is_passed_without_being_held(tmp_path: Path) -> None:
    path = write(tmp_path, '{"account": "' + "x" * (MAX_LINE + 100_000) + '"}', saved("m2"))
    bad, good = read_events(path)
    assert isinstance(bad, BadLine)
    assert isinstance(good, SavedEvent)
    assert good.where == f"{path}:2"


def test_what_is_wrong_is_said_without_the_lines_text(tmp_path: Path) -> None:
    path = write(
        tmp_path, '{"account": "demo", "event": {}, "at": "the tide is out"}', '{"account": "demo", "event": 5}'
    )
    for bad in replay(path, ListPublisher()).bad:
        assert "the tide is out" not in str(bad)


def test_unknown_accounts_channels_and_events_are_told(tmp_path: Path) -> None:
    lines = [json.dumps({"account": name, "event": {}}) for name in ("nobody", "later", "demo")]
    summary = replay(write(tmp_path, *lines), ListPublisher())
    assert len(summary.bad) == 3
    assert "account" in summary.bad[0].problem
    assert "qq" in summary.bad[1].problem
    assert summary.events == 0


def test_ids_and_times_of_receipt(tmp_path: Path) -> None:
    publisher = ListPublisher()
    summary = replay(write(tmp_path, saved("m1", at=1_790_000_000_000), saved("m2")), publisher)
    assert publisher.taken == [("m1", 1_790_000_000_000), ("m2", NOW_MS)]
    assert summary.ids == ["id-m1", "id-m2"]
    assert (summary.events, summary.bad) == (2, [])


def test_the_rate_is_kept(tmp_path: Path) -> None:
    publisher, clock = ListPublisher(), SteppingClock()
    replay(write(tmp_path, *[saved(f"m{n}") for n in range(5)]), publisher, rate=2, clock=clock)
    assert [at - NOW_MS for _, at in publisher.taken] == [0, 500, 1000, 1500, 2000]


def test_a_full_backlog_is_waited_for(tmp_path: Path) -> None:
    publisher, clock = ListPublisher(Overloaded("account", 3), Overloaded("global", 4)), SteppingClock()
    assert replay(write(tmp_path, saved("m1")), publisher, clock=clock).events == 1
    assert clock.passed == 7


def test_a_store_that_comes_back_is_used_and_one_that_stays_away_ends_it(tmp_path: Path) -> None:
    path = write(tmp_path, saved("m1"))
    assert replay(path, ListPublisher(*[Unavailable("gone")] * 4)).events == 1
    with pytest.raises(Unavailable):
        replay(path, ListPublisher(*[Unavailable("gone")] * 5))


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        replay(tmp_path / "nothing.jsonl", ListPublisher())
