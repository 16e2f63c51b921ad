"""An agent of one's own behind an HTTP address. The contract, with examples, is in `docs/harness-http.md`."""

import asyncio
from collections.abc import Callable

import httpx
from pydantic import ValidationError

from shared.clock import Clock
from shared.errors import EffectUnknown, Malformed, MillstreamError, Refused, Transient
from shared.harness.http_stream import EventDecoder, StreamedAnswer
from shared.harness.http_transport import Transport
from shared.harness.http_wire import Accepted, AnswerBody, CancelRequest, HistoryBody, InteractionRequest, TurnRequest
from shared.harness.port import (
    Answer,
    HarnessRefused,
    HistoryPage,
    Progress,
    Question,
    Turn,
    TurnAccepted,
    TurnEvent,
)
from shared.harness.replies import retry_after_s
from shared.logging import logger
from shared.message import short_hash
from shared.settings import HarnessSettings

log = logger(__name__)

POLL_FIRST_S = 0.5
POLL_GROWTH = 1.5
POLL_MAX_S = 10.0
"""Waits between polls where the harness asks for none: half a second, growing to ten, so that an answer is noticed late
by a third of its turn at most and a ten-minute turn costs about seventy requests."""

POLL_TIMEOUT_S = 30.0
"""Longest silence of one poll; a harness may hold a poll open so long."""

RETRY_AFTER_MAX_S = 60.0
"""A longer `Retry-After` between polls is cut to this: the turn's own time limit is in minutes."""

CANCEL_S = 5.0
"""Longest wait for a cancellation, which is best effort."""


class Http:
    """One HTTP harness. Whether a turn may be repeated is the configuration's word (`idempotent`)."""

    def __init__(self, name: str, settings: HarnessSettings, clock: Clock) -> None:
        try:
            url = httpx.URL(settings.url)
        except httpx.InvalidURL as error:
            raise Refused(f"harness {name}: url is not an address") from error
        if url.scheme not in {"http", "https"} or not url.host:
            raise Refused(f"harness {name}: url has to begin with http:// or https://")
        self._name = name
        self._url = url
        self._idempotent = settings.idempotent
        self._clock = clock
        self._poll_s = min(settings.timeout_s, POLL_TIMEOUT_S)
        secret, token = settings.secret.get_secret_value(), settings.api_key.get_secret_value()
        self._transport = Transport(secret, token, settings.timeout_s, clock)

    @property
    def idempotent(self) -> bool:
        """May a turn be repeated with the same Idempotency-Key?"""
        return self._idempotent

    async def ask(self, turn: Turn, on_event: Callable[[TurnEvent], None]) -> Answer:
        """Post the turn; read, stream or poll its answer."""
        request = await asyncio.to_thread(TurnRequest.of, turn)
        return await self._post(request.encode(), turn.id, on_event)

    async def answer(self, turn: Turn, question: Question, text: str, on_event: Callable[[TurnEvent], None]) -> Answer:
        """Post what the asker said. The key differs from the turn's: it is another request of the same turn."""
        request = InteractionRequest.of(turn, question, text)
        return await self._post(request.encode(), f"{turn.id}:{short_hash(question.id)}", on_event)

    async def resume(self, turn: Turn, url: str, on_event: Callable[[TurnEvent], None]) -> Answer:
        """Poll `url` until the turn is done."""
        return await self._poll(self._turn_url(url), turn.id, 0.0, on_event)

    async def cancel(self, turn: Turn, url: str | None) -> None:
        """`DELETE` the turn URL, or post to `/cancel` where there is none."""
        try:
            if url is not None:
                method, target, body = "DELETE", self._turn_url(url), b""
            else:
                method, target, body = "POST", self._below("cancel"), CancelRequest(turn_id=turn.id).encode()
            async with self._transport.exchange(method, target, body, turn.id, CANCEL_S):
                pass
        except (MillstreamError, HarnessRefused, httpx.HTTPError) as error:
            log.warning("harness_cancel_failed", harness=self._name, turn=turn.id, error=type(error).__name__)

    async def history(self, session: str, before_ms: int, limit: int) -> HistoryPage:
        """A page of the session; empty where the harness keeps none (404, 501)."""
        query = {"session": session, "before_ms": str(before_ms), "limit": str(limit)}
        url = self._below("history").copy_merge_params(query)
        async with self._transport.exchange("GET", url, timeout_s=self._poll_s) as response:
            if response.status_code in {404, 501}:
                return HistoryPage((), more=False)
            self._transport.check(response)
            body = await self._transport.body(response)
        try:
            return HistoryBody.model_validate_json(body).page(before_ms, limit)
        except ValidationError:
            raise HarnessRefused("the history is invalid") from None

    async def _post(self, body: bytes, key: str, on_event: Callable[[TurnEvent], None]) -> Answer:
        async with self._transport.exchange("POST", self._url, body, key) as response:
            self._transport.check(response)
            if response.status_code == 200:
                return await self._read(response, on_event)
            url = await self._accepted(response)
            asked = self._asked(response)
        on_event(TurnAccepted(str(url)))
        return await self._poll(url, key, POLL_FIRST_S if asked is None else asked, on_event)

    async def _poll(self, url: httpx.URL, key: str, wait_s: float, on_event: Callable[[TurnEvent], None]) -> Answer:
        """Ask for the answer until it is there. Whatever is not a definite answer is asked for again: the turn runs at
        the harness, reading it has no effect, and the caller limits the time."""
        backoff_s = POLL_FIRST_S
        while True:
            await self._clock.sleep(wait_s)
            asked: float | None = None
            try:
                async with self._transport.exchange("GET", url, key=key, timeout_s=self._poll_s) as response:
                    self._transport.check(response)
                    if response.status_code == 200:
                        return await self._read(response, on_event)
                    asked = self._asked(response)
                    on_event(Progress())
            except Transient as error:
                asked = None if error.retry_after_s is None else min(error.retry_after_s, RETRY_AFTER_MAX_S)
            except EffectUnknown:
                log.debug("harness_poll_broke", harness=self._name)
            wait_s = backoff_s if asked is None else asked
            backoff_s = min(backoff_s * POLL_GROWTH, POLL_MAX_S)

    async def _read(self, response: httpx.Response, on_event: Callable[[TurnEvent], None]) -> Answer:
        """The answer in a 200: JSON or server-sent events."""
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream":
            return await self._stream(response, on_event)
        if kind != "application/json":
            raise HarnessRefused("the answer is neither JSON nor a stream of events")
        try:
            return AnswerBody.model_validate_json(await self._transport.body(response)).answer()
        except ValidationError:
            raise HarnessRefused("the answer is invalid") from None

    async def _stream(self, response: httpx.Response, on_event: Callable[[TurnEvent], None]) -> Answer:
        decoder, collected = EventDecoder(), StreamedAnswer()
        async for chunk in response.aiter_raw():
            on_event(Progress())
            try:
                events = decoder.feed(chunk)
            except Malformed as error:
                raise HarnessRefused(str(error)) from error
            for event in events:
                answer = collected.take(event)
                if answer is not None:
                    return answer
        raise EffectUnknown("the stream ended before its done event")

    async def _accepted(self, response: httpx.Response) -> httpx.URL:
        """The turn URL of a 202."""
        location = response.headers.get("location")
        if location is None:
            try:
                location = Accepted.model_validate_json(await self._transport.body(response)).turn_url
            except ValidationError:
                raise HarnessRefused("the 202 names no turn URL") from None
        return self._turn_url(location)

    def _turn_url(self, location: str) -> httpx.URL:
        """`location` as an absolute URL. Raises HarnessRefused unless it is of the configured address's origin: nobody
        may send our signed requests elsewhere."""
        try:
            url = self._url.join(location)
        except (httpx.InvalidURL, ValueError) as error:
            raise HarnessRefused("the turn URL is no address") from error
        if _origin(url) != _origin(self._url):
            raise HarnessRefused("the turn URL is of another origin")
        return url.copy_with(fragment=None)

    def _asked(self, response: httpx.Response) -> float | None:
        asked = retry_after_s(response.headers.get("retry-after"), self._clock.now_ms())
        return None if asked is None else min(asked, RETRY_AFTER_MAX_S)

    def _below(self, name: str) -> httpx.URL:
        return self._url.copy_with(path=f"{self._url.path.rstrip('/')}/{name}")


def _origin(url: httpx.URL) -> tuple[str, str, int | None, bytes]:
    """Scheme, host, port and credentials; only http and https have a port of their own."""
    return url.scheme, url.host, url.port or {"http": 80, "https": 443}.get(url.scheme), url.userinfo
