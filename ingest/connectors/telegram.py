"""Telegram's long poll: one task an account, under the account's lease.

An update is confirmed by asking for the one after it, and that is done only after the pipeline has it. So a crash at
any point brings it again, and the second copy is recognised as a duplicate.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from ingest.intake import count_received
from ingest.port import AccountLease, Cursor, CursorStore, Fence, Overloaded, PublisherPort, Unavailable
from shared import metrics
from shared.channels.port import Channel, Json, PlatformApi, PlatformResponse
from shared.clock import Clock
from shared.errors import Malformed, MillstreamError
from shared.logging import logger
from shared.message import Message
from shared.retry import RetryPolicy, Rng, backoff_s
from shared.settings import AccountSettings

API_URL: Final = "https://api.telegram.org"
POLL_S: Final = 25
"""How long Telegram holds a poll open; its server allows 50, proxies on the way often cut at 30."""
MARGIN_S: Final = 10
"""What a poll may take beyond that before it counts as broken."""
BATCH: Final = 100
"""Most updates of one poll (channel facts, Telegram, "Transport": limit 1-100)."""
MAX_ANSWER: Final = 33_554_432
"""Largest answer in bytes: `BATCH` updates of 300 kB; a text has 4,096 characters and quotes one level."""
FORGET_MS: Final = 6 * 86_400_000
"""After so long without an update the cursor is dropped: after a quiet week update ids start again at a random value
(channel facts, Telegram, "Ids"), and an offset that is too high would hide them. What it confirmed stays confirmed."""
CONFLICT_S: Final = 30.0
"""Between tries while a webhook or another poller has the bot: soon enough for a person who just removed it, rare
enough not to throw the other poller out all the time."""
LOGIN_S: Final = 300.0
"""Between tries with a token that Telegram refuses; a new token in the configuration is used at the next one."""
STANDBY_S: Final = 2.0
"""Between tries to get the lease while another process holds it."""
WATCH_S: Final = 1.0
"""How often the lease is looked at while a poll is open: leases are renewed every second (design, section 3)."""
EMPTY_S: Final = 1.0
"""Pause after an empty answer that came at once, so that a proxy which never waits is not asked in a tight loop."""
UPDATES: Final = ("message", "edited_message", "channel_post", "edited_channel_post")

State: TypeAlias = Literal[
    "starting",
    "standby",  # another process holds the lease
    "up",
    "webhook_active",  # 409: remove the webhook, or set transport = "webhook"
    "other_poller",  # 409: the token is used by another program
    "login_expired",  # the token is refused
    "unreachable",
    "store_down",  # Redis does not answer
    "stopped",
]

_log = logger("connector")


@dataclass(frozen=True, slots=True)
class Ports:
    """What the poll works with. `account_now` gives the account as configured now, None when it is not to be polled."""

    account_now: Callable[[], AccountSettings | None]
    channel: Channel
    api: PlatformApi
    publisher: PublisherPort
    lease: AccountLease
    cursors: CursorStore
    clock: Clock
    policy: RetryPolicy
    rng: Rng


class TelegramPoll:
    """The connector of one account; `state` says what it is doing."""

    def __init__(self, account_id: str, ports: Ports) -> None:
        self._id = account_id
        self._ports = ports
        self._fence: Fence | None = None
        self._cursor: Cursor | None = None
        self._failures = 0
        self.state: State = "starting"

    async def run(self, stop: asyncio.Event) -> None:
        """Poll until `stop` is set or the account is not to be polled any more. Raises nothing but a fault of ours."""
        try:
            while not stop.is_set() and (account := self._ports.account_now()) is not None:
                pause_s = await self._round(account, stop)
                if pause_s > 0:
                    await self._until(stop, pause_s)
        finally:
            self._fence = None
            await self._ports.lease.release()
            self._enter("stopped")

    async def _round(self, account: AccountSettings, stop: asyncio.Event) -> float:
        """One poll and what follows from it; returns how long to wait before the next, in seconds."""
        try:
            if not await self._held():
                self._enter("standby")
                return STANDBY_S
            asked = self._ports.clock.monotonic()
            response = await self._poll(account, stop)
            if response is None:
                return 0
            updates = self._updates(response)
            if not isinstance(updates, list):
                return updates
            self._enter("up")
            if not updates:
                self._failures = 0
                return EMPTY_S if self._ports.clock.monotonic() - asked < EMPTY_S else 0
            return await self._take(updates, account)
        except Overloaded as error:
            # Not confirmed: the same updates come again with the next poll.
            _log.warning("connector_waits", account=self._id, scope=error.scope)
            return error.retry_after_s
        except Unavailable:
            self._enter("store_down")
            return self._backoff()
        except MillstreamError:
            # Asking again has no effect beyond the answer, so even a poll whose fate is unknown may be repeated.
            self._enter("unreachable")
            return self._backoff()

    async def _held(self) -> bool:
        if self._fence is not None and self._ports.lease.valid():
            return True
        self._fence = await self._ports.lease.acquire()
        if self._fence is None:
            return False
        self._cursor = await self._ports.cursors.load()
        return True

    async def _poll(self, account: AccountSettings, stop: asyncio.Event) -> PlatformResponse | None:
        """The answer, or None when the poll was given up because of `stop` or a lost lease."""
        wanted: dict[str, Json] = {"timeout": POLL_S, "limit": BATCH, "allowed_updates": list(UPDATES)}
        cursor = self._cursor
        if cursor is not None and self._ports.clock.now_ms() - cursor.at_ms < FORGET_MS:
            wanted["offset"] = cursor.offset
        base = account.credential("api_url").rstrip("/") or API_URL
        request = asyncio.ensure_future(
            self._ports.api.request(
                "poll",
                "POST",
                f"{base}/bot{account.credential('token')}/getUpdates",
                json=wanted,
                timeout_s=POLL_S + MARGIN_S,
                max_bytes=MAX_ANSWER,
            )
        )
        stopped = asyncio.ensure_future(stop.wait())
        try:
            while self._ports.lease.valid():
                done, _ = await asyncio.wait((request, stopped), timeout=WATCH_S, return_when=asyncio.FIRST_COMPLETED)
                if request in done:
                    return request.result()
                if done:
                    return None
            self._fence = None
            return None
        finally:
            await _end(request, stopped)

    def _updates(self, response: PlatformResponse) -> list[Json] | float:
        """The updates of a good answer, or how long to wait after a bad one. Raises Malformed."""
        answer = response.json()
        if not isinstance(answer, dict):
            raise Malformed("the answer is no object")
        if response.status == 200 and answer.get("ok") is True:
            result = answer.get("result")
            if not isinstance(result, list):
                raise Malformed("the answer has no list of updates")
            return result
        if response.status == 409:
            self._enter("webhook_active" if "webhook" in str(answer.get("description")) else "other_poller")
            return CONFLICT_S
        if response.status in (401, 403, 404):
            self._enter("login_expired")
            return LOGIN_S
        self._enter("unreachable")
        parameters = answer.get("parameters")
        wish = parameters.get("retry_after") if isinstance(parameters, dict) else None
        return self._backoff(float(wish) if isinstance(wish, int) and response.status == 429 else 0.0)

    async def _take(self, updates: list[Json], account: AccountSettings) -> float:
        """Publish the updates, then move the cursor. Raises Overloaded or Unavailable, and then nothing has moved."""
        ports = self._ports
        now_ms = ports.clock.now_ms()
        messages = list[Message]()
        offset: int | None = None
        parsed = list[list[Message]]()
        for update in updates:
            offset = _after(update, offset)
            found = self._normalise(update, account)
            if found is not None:
                parsed.append(found)
                messages += found
        if messages:
            await ports.publisher.accept(messages, now_ms)
        for found in parsed:
            count_received("telegram", found)
        metrics.connectors.inbound("telegram", self._id, now_ms)
        if offset is None:
            raise Malformed("no update has an id")
        self._failures = 0
        self._cursor = Cursor(offset, now_ms)
        if self._fence is None or not await ports.cursors.save(self._cursor, self._fence):
            self._fence = None
        return 0

    def _normalise(self, update: Json, account: AccountSettings) -> list[Message] | None:
        try:
            return self._ports.channel.normalise(update, account)
        except Malformed:
            _log.warning("update_malformed", account=self._id)
        except Exception as error:
            # One update that we cannot handle must not keep all later ones away.
            _log.error("update_failed", account=self._id, exc_info=error)
        metrics.events_rejected.labels("telegram", "malformed").inc()
        return None

    def _backoff(self, at_least_s: float = 0.0) -> float:
        self._failures += 1
        return max(at_least_s, backoff_s(self._failures, self._ports.policy, self._ports.rng))

    async def _until(self, stop: asyncio.Event, seconds: float) -> None:
        slept = asyncio.ensure_future(self._ports.clock.sleep(seconds))
        stopped = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait((slept, stopped), return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _end(slept, stopped)

    def _enter(self, state: State) -> None:
        if state in ("standby", "stopped"):
            metrics.connectors.forget("telegram", self._id)
        else:
            metrics.connectors.set("telegram", self._id, state == "up")
        if state == self.state:
            return
        self.state = state
        say = _log.info if state in ("up", "standby", "stopped") else _log.warning
        say("connector_state", channel="telegram", account=self._id, state=state)


def _after(update: Json, offset: int | None) -> int | None:
    """The offset that confirms `update` as well; ids only rise within one answer."""
    found = update.get("update_id") if isinstance(update, dict) else None
    return found + 1 if isinstance(found, int) and not isinstance(found, bool) else offset


async def _end(*tasks: "asyncio.Future[Any]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
