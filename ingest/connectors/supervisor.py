"""One connector task for each account that has a poll or a socket, following the configuration."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from shared.clock import Clock
from shared.logging import logger
from shared.settings import AccountSettings, Settings

LOOK_S: Final = 1.0
"""How often the configuration is looked at: a new version is followed within a second (design, section 7)."""
RESTART_S: Final = 5.0
"""Before a connector that failed by a fault of ours is started again."""

_log = logger("connector")


class Connector(Protocol):
    """A poll or a socket."""

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set or the account wants no connector any more."""
        ...


@dataclass(slots=True)
class _Running:
    channel: str
    stop: asyncio.Event
    task: "asyncio.Task[None]"


class Supervisor:
    """`make` builds an account's connector, or gives None where there is none for its channel yet."""

    def __init__(
        self, settings_now: Callable[[], Settings], make: Callable[[AccountSettings], Connector | None], clock: Clock
    ) -> None:
        self._settings_now = settings_now
        self._make = make
        self._clock = clock
        self._running = dict[str, _Running]()
        self._not_before = dict[str, float]()
        self._without = set[str]()

    async def run(self, stop: asyncio.Event) -> None:
        """Keep the connectors running until `stop` is set, then end them all."""
        try:
            while not stop.is_set():
                self._reap()
                self._follow()
                try:
                    await asyncio.wait_for(stop.wait(), LOOK_S)
                except TimeoutError:
                    continue
        finally:
            for one in self._running.values():
                one.stop.set()
            await asyncio.gather(*(one.task for one in self._running.values()), return_exceptions=True)
            self._running.clear()

    def _reap(self) -> None:
        for account, one in list(self._running.items()):
            if not one.task.done():
                continue
            del self._running[account]
            error = None if one.task.cancelled() else one.task.exception()
            if error is not None:
                _log.error("connector_failed", account=account, exc_info=error)
                self._not_before[account] = self._clock.monotonic() + RESTART_S

    def _follow(self) -> None:
        wanted = {a.id: a for a in self._settings_now().accounts if a.used_transport != "webhook"}
        for account, one in self._running.items():
            if account not in wanted or wanted[account].channel != one.channel:
                one.stop.set()
        for account in wanted.values():
            if account.id in self._running or self._clock.monotonic() < self._not_before.get(account.id, 0.0):
                continue
            connector = self._make(account)
            if connector is not None:
                self._without.discard(account.id)
                ends = asyncio.Event()
                self._running[account.id] = _Running(account.channel, ends, asyncio.create_task(connector.run(ends)))
            elif account.id not in self._without:
                self._without.add(account.id)
                _log.warning("connector_missing", account=account.id, channel=account.channel)
