"""Connectors follow the configuration; one that breaks is started again and harms no other."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ingest.connectors import supervisor
from ingest.connectors.supervisor import Supervisor
from shared.clock import ServerClock
from shared.settings import AccountSettings, Settings, from_mapping


class Recorded:
    """A connector that works until it is stopped, or breaks at once `breaks` times."""

    def __init__(self, account: str, journal: list[str], changed: asyncio.Event, breaks: bool) -> None:
        self._account = account
        self._journal = journal
        self._changed = changed
        self._breaks = breaks

    async def run(self, stop: asyncio.Event) -> None:
        self._say("start")
        if self._breaks:
            raise RuntimeError("broken")
        await stop.wait()
        self._say("stop")

    def _say(self, what: str) -> None:
        self._journal.append(f"{what} {self._account}")
        self._changed.set()


class Stage:
    """A supervisor over a configuration that the test changes."""

    def __init__(self, *accounts: dict[str, Any]) -> None:
        self.journal = list[str]()
        self.changed = asyncio.Event()
        self.breaks = 0
        self.settings: Settings
        self.configure(*accounts)

    def configure(self, *accounts: dict[str, Any]) -> None:
        self.settings = from_mapping({"accounts": accounts})

    def make(self, account: AccountSettings) -> Recorded | None:
        if account.channel != "telegram":
            return None
        self.breaks -= 1
        return Recorded(account.id, self.journal, self.changed, self.breaks >= 0)

    async def until(self, *journal: str) -> None:
        async with asyncio.timeout(20):
            while self.journal != list(journal):
                self.changed.clear()
                await self.changed.wait()


def poll(account: str) -> dict[str, Any]:
    return {"id": account, "channel": "telegram", "transport": "poll", "credentials": {"token": "7:AA"}}


def supervised(stage_of: Callable[[], Stage], work: Callable[[Stage], Awaitable[None]]) -> list[str]:
    async def main() -> list[str]:
        stage = stage_of()
        stop = asyncio.Event()
        clock = ServerClock(lambda: 0)
        task = asyncio.create_task(Supervisor(lambda: stage.settings, stage.make, clock).run(stop))
        await work(stage)
        stop.set()
        await task
        return stage.journal

    return asyncio.run(main())


def test_accounts_with_a_poll_are_started_and_stopped_with_the_process() -> None:
    webhook = {"id": "hook", "channel": "telegram"}
    socket = {"id": "sock", "channel": "slack", "transport": "socket"}

    async def work(stage: Stage) -> None:
        await stage.until("start a")

    assert supervised(lambda: Stage(webhook, poll("a"), socket), work) == ["start a", "stop a"]


def test_a_new_configuration_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "LOOK_S", 0.02)

    async def work(stage: Stage) -> None:
        await stage.until("start a")
        stage.configure(poll("a"), poll("b"))
        await stage.until("start a", "start b")
        stage.configure(poll("b"))
        await stage.until("start a", "start b", "stop a")

    assert supervised(lambda: Stage(poll("a")), work)[-1] == "stop b"


def test_a_connector_that_breaks_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "LOOK_S", 0.02)
    monkeypatch.setattr(supervisor, "RESTART_S", 0.05)

    def stage_of() -> Stage:
        stage = Stage(poll("a"))
        stage.breaks = 2
        return stage

    async def work(stage: Stage) -> None:
        await stage.until("start a", "start a", "start a")

    assert supervised(stage_of, work) == ["start a", "start a", "start a", "stop a"]
