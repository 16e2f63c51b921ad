"""The long poll against a Bot API on loopback: nothing is confirmed before it is safe, and nothing blocks it."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from ingest_bot_api import BotApi, bot_api
from ingest_support import NOW_S, MemoryPublisher, QuickClock, counted, run, telegram_update

from ingest.connectors.telegram import CONFLICT_S, LOGIN_S, Ports, State, TelegramPoll
from ingest.port import Cursor, Fence, Overloaded, Unavailable
from shared import channels, metrics
from shared.channels.http import HttpApi
from shared.settings import AccountSettings, RetrySettings, from_mapping

DAY_MS = 86_400_000


class MemoryLease:
    """A lease that others can hold or take."""

    def __init__(self) -> None:
        self.free = True
        self.held: Fence | None = None
        self.given = 0

    async def acquire(self) -> Fence | None:
        if not self.free:
            return None
        self.given += 1
        self.held = Fence(f"token-{self.given}")
        return self.held

    def valid(self) -> bool:
        return self.held is not None

    async def release(self) -> None:
        self.held = None


class MemoryCursors:
    """Keeps one cursor; refuses the fence of a former holder."""

    def __init__(self, lease: MemoryLease) -> None:
        self._lease = lease
        self.cursor: Cursor | None = None
        self.trouble: Unavailable | None = None

    async def load(self) -> Cursor | None:
        return self.cursor

    async def save(self, cursor: Cursor, fence: Fence) -> bool:
        if self.trouble is not None:
            raise self.trouble
        if fence != self._lease.held:
            return False
        self.cursor = cursor
        return True


@dataclass
class Scene:
    api: BotApi
    publisher: MemoryPublisher
    lease: MemoryLease
    cursors: MemoryCursors
    clock: QuickClock
    poll: TelegramPoll
    stop: asyncio.Event
    account: list[AccountSettings | None]

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait until `true` holds; looked at after every step of the loop's other tasks."""
        async with asyncio.timeout(20):
            while not true():
                await asyncio.sleep(0.005)

    async def state(self, wanted: State) -> None:
        await self.until(lambda: self.poll.state == wanted)


def account_for(url: str) -> AccountSettings:
    table = {"id": "poll", "channel": "telegram", "transport": "poll"}
    made = from_mapping({"accounts": [{**table, "credentials": {"token": "7100000043:AA-invented", "api_url": url}}]})
    found = made.account("poll")
    assert found is not None
    return found


@asynccontextmanager
async def scene(prepare: Callable[[Scene], None]) -> AsyncIterator[Scene]:
    metrics.start(("ingest",), ("telegram",))
    async with bot_api() as api:
        lease = MemoryLease()
        account: list[AccountSettings | None] = [account_for(api.url)]
        http = HttpApi("poll", "telegram", metrics.request_hook("telegram"))
        ports = Ports(
            lambda: account[0],
            channels.channel("telegram"),
            http,
            MemoryPublisher(),
            lease,
            MemoryCursors(lease),
            QuickClock(speed=100),
            RetrySettings(base_s=1, max_s=2),
            random.Random(1),
        )
        poll = TelegramPoll("poll", ports)
        made = Scene(api, ports.publisher, lease, ports.cursors, ports.clock, poll, asyncio.Event(), account)  # type: ignore[arg-type]
        prepare(made)
        running = asyncio.create_task(poll.run(made.stop))
        try:
            yield made
        finally:
            made.stop.set()
            await running
            await http.aclose()
        assert poll.state == "stopped"
        assert lease.held is None


def played(work: Callable[[Scene], Awaitable[None]], prepare: Callable[[Scene], None] = lambda _: None) -> None:
    async def main() -> None:
        async with scene(prepare) as made:
            await work(made)

    run(main)


def test_updates_are_published_and_then_confirmed_by_the_next_offset() -> None:
    before = counted("events_received_total", channel="telegram", kind="message")

    async def work(s: Scene) -> None:
        s.api.push(telegram_update(820000001, 1001), telegram_update(820000002, 1002))
        await s.until(lambda: s.cursors.cursor is not None)
        await s.api.until_asked(2)
        assert [m.message_id for m in s.publisher.messages] == ["1001", "1002"]
        assert s.publisher.batches == [2]
        assert s.cursors.cursor == Cursor(820000003, NOW_S * 1000)
        assert "offset" not in s.api.asked[0]
        assert s.api.asked[1]["offset"] == 820000003
        assert s.api.asked[0]["limit"] == 100
        assert s.api.asked[0]["timeout"] == 25
        assert s.api.tokens == {"7100000043:AA-invented"}
        assert s.poll.state == "up"
        assert counted("connector_up", channel="telegram", account="poll") == 1
        assert counted("connector_last_inbound_timestamp_seconds", channel="telegram", account="poll") == NOW_S

    played(work)
    assert counted("events_received_total", channel="telegram", kind="message") == before + 2
    assert 'connector_up{account="poll"' not in metrics.render().decode()


def test_nothing_is_confirmed_before_accept_has_answered() -> None:
    async def work(s: Scene) -> None:
        await s.publisher.asked.wait()
        assert s.cursors.cursor is None
        assert len(s.api.asked) == 1
        s.publisher.gate.set()
        await s.until(lambda: s.cursors.cursor is not None)

    def prepare(s: Scene) -> None:
        s.publisher.gate.clear()
        s.api.push(telegram_update())

    played(work, prepare)


def test_a_stored_cursor_is_used_at_once() -> None:
    async def work(s: Scene) -> None:
        await s.api.until_asked(1)
        assert s.api.asked[0]["offset"] == 820000007

    def prepare(s: Scene) -> None:
        s.cursors.cursor = Cursor(820000007, NOW_S * 1000 - 5 * DAY_MS)

    played(work, prepare)


def test_a_cursor_of_a_quiet_week_is_dropped_since_ids_may_have_started_again() -> None:
    async def work(s: Scene) -> None:
        s.api.push(telegram_update(41, 1002))
        await s.until(lambda: s.cursors.cursor == Cursor(42, NOW_S * 1000))
        assert "offset" not in s.api.asked[0]

    def prepare(s: Scene) -> None:
        s.cursors.cursor = Cursor(820000007, NOW_S * 1000 - 7 * DAY_MS)

    played(work, prepare)


@pytest.mark.parametrize("trouble", [Overloaded("account", 3), Overloaded("memory", 3), Unavailable("gone")])
def test_a_full_or_absent_pipeline_is_waited_for_without_confirming(trouble: Any) -> None:
    async def work(s: Scene) -> None:
        await s.api.until_asked(3)
        assert s.cursors.cursor is None
        assert all("offset" not in asked for asked in s.api.asked)
        if isinstance(trouble, Overloaded):
            assert set(s.clock.slept) == {3}
        else:
            assert s.poll.state == "store_down"
        s.publisher.trouble = None
        await s.until(lambda: s.cursors.cursor is not None)
        assert [m.message_id for m in s.publisher.messages] == ["1001"]

    def prepare(s: Scene) -> None:
        s.publisher.trouble = trouble
        s.api.push(telegram_update())

    played(work, prepare)


def test_one_malformed_update_is_counted_and_the_others_go_on() -> None:
    before = counted("events_rejected_total", channel="telegram", reason="malformed")
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {**telegram_update()["message"], "reply_to_message": deep}

    async def work(s: Scene) -> None:
        await s.until(lambda: s.cursors.cursor is not None)
        assert s.cursors.cursor == Cursor(820000005, NOW_S * 1000)
        assert {m.message_id for m in s.publisher.messages} >= {"1001", "1003"}

    def prepare(s: Scene) -> None:
        broken = {"update_id": 820000002, "message": "the tide is out"}
        s.api.push(telegram_update(820000001, 1001), broken, telegram_update(820000003, 1003))
        s.api.push({"update_id": 820000004, "message": deep})

    played(work, prepare)
    assert counted("events_rejected_total", channel="telegram", reason="malformed") == before + 1


@pytest.mark.parametrize("junk", [5, None, "x", [], {"update_id": True}, {"update_id": "820000001"}])
def test_an_update_without_id_never_blocks_the_poll(junk: Any) -> None:
    async def work(s: Scene) -> None:
        await s.until(lambda: s.cursors.cursor is not None)
        assert s.publisher.messages[-1].message_id == "1001"

    def prepare(s: Scene) -> None:
        s.api.script.append((200, {"ok": True, "result": [junk, telegram_update()]}))

    played(work, prepare)


@pytest.mark.parametrize(
    ("status", "answer", "state", "pause"),
    [
        (409, "Conflict: can't use getUpdates method while webhook is active", "webhook_active", CONFLICT_S),
        (409, "Conflict: terminated by other getUpdates request", "other_poller", CONFLICT_S),
        (401, "Unauthorized", "login_expired", LOGIN_S),
        (404, "Not Found", "login_expired", LOGIN_S),
    ],
)
def test_a_conflict_or_a_dead_token_keeps_the_connector_down_with_its_reason(
    status: int, answer: str, state: State, pause: float
) -> None:
    async def work(s: Scene) -> None:
        await s.state(state)
        assert counted("connector_up", channel="telegram", account="poll") == 0
        assert 'connector_up{account="poll",channel="telegram"} 0.0' in metrics.render().decode()
        s.api.push(telegram_update())
        await s.state("up")
        assert s.clock.slept[0] == pause
        await s.until(lambda: len(s.publisher.messages) == 1)

    def prepare(s: Scene) -> None:
        s.api.script.append((status, {"ok": False, "error_code": status, "description": answer}))

    played(work, prepare)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, {"ok": False}),
        (502, b"<html>"),
        (200, b"{"),
        (200, []),
        (200, {"ok": True}),
        (200, {"ok": 1, "result": []}),
    ],
)
def test_a_broken_answer_is_waited_out_with_backoff(status: int, body: Any) -> None:
    async def work(s: Scene) -> None:
        await s.until(lambda: len(s.publisher.messages) == 1)
        assert 0 <= s.clock.slept[0] <= 1
        assert 0 <= s.clock.slept[1] <= 2

    def prepare(s: Scene) -> None:
        s.api.script += [(status, body)] * 2
        s.api.push(telegram_update())

    played(work, prepare)


def test_a_429_is_obeyed() -> None:
    async def work(s: Scene) -> None:
        await s.until(lambda: len(s.publisher.messages) == 1)
        assert s.clock.slept[0] == 17

    def prepare(s: Scene) -> None:
        s.api.script.append((429, {"ok": False, "parameters": {"retry_after": 17}}))
        s.api.push(telegram_update())

    played(work, prepare)


def test_a_server_that_is_not_there_is_tried_again() -> None:
    async def work(s: Scene) -> None:
        await s.state("unreachable")
        s.api.push(telegram_update())
        s.account[0] = account_for(s.api.url)
        await s.until(lambda: len(s.publisher.messages) == 1)

    def prepare(s: Scene) -> None:
        s.account[0] = account_for("http://127.0.0.1:9")

    played(work, prepare)


def test_two_pollers_never_ask_at_once() -> None:
    async def work(s: Scene) -> None:
        await s.state("standby")
        assert s.api.asked == []
        assert 'connector_up{account="poll"' not in metrics.render().decode()
        s.lease.free = True
        await s.api.until_asked(1)

    def prepare(s: Scene) -> None:
        s.lease.free = False

    played(work, prepare)


def test_a_lost_lease_ends_the_open_poll_and_the_cursor_is_read_again() -> None:
    async def work(s: Scene) -> None:
        await s.api.until_asked(1)
        s.lease.free = False
        s.lease.held = None
        s.cursors.cursor = Cursor(820000050, NOW_S * 1000)
        await s.state("standby")
        s.lease.free = True
        await s.api.until_asked(2)
        assert s.api.asked[1]["offset"] == 820000050

    played(work)


def test_a_cursor_is_not_written_by_a_former_holder() -> None:
    async def work(s: Scene) -> None:
        await s.publisher.asked.wait()
        s.lease.held = Fence("somebody-else")
        s.publisher.gate.set()
        await s.until(lambda: s.lease.given == 2)
        await s.until(lambda: s.cursors.cursor is not None)
        # The second round brought the update again; admission knows it as a duplicate.
        assert s.publisher.batches == [1, 1]

    def prepare(s: Scene) -> None:
        s.publisher.gate.clear()
        s.api.push(telegram_update())

    played(work, prepare)


def test_a_cursor_that_cannot_be_written_does_not_bring_the_update_twice() -> None:
    async def work(s: Scene) -> None:
        await s.until(lambda: len(s.publisher.messages) == 1)
        await s.state("store_down")
        s.cursors.trouble = None
        await s.api.until_asked(2)
        assert s.api.asked[1]["offset"] == 820000002
        assert s.publisher.batches == [1]

    def prepare(s: Scene) -> None:
        s.cursors.trouble = Unavailable("gone")
        s.api.push(telegram_update())

    played(work, prepare)


def test_an_account_that_is_taken_out_of_the_configuration_is_no_longer_polled() -> None:
    async def work(s: Scene) -> None:
        await s.api.until_asked(1)
        s.account[0] = None
        s.api.push(telegram_update())
        await s.state("stopped")

    played(work)
