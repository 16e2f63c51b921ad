"""The edge's HTTP side: verify, handshake, normalise, accept, and only then acknowledge."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Final, Literal, TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ingest.intake import count_received, overload_reason
from ingest.port import Overloaded, PublisherPort, Unavailable
from shared import channels, metrics
from shared.channels.body import check_depth, parse_json
from shared.channels.port import Channel, HookRequest
from shared.clock import Clock
from shared.errors import Malformed, MillstreamError, Unauthorised
from shared.logging import logger
from shared.message import Message
from shared.settings import AccountSettings, Settings

BODY_S: Final = 10.0
"""A body must be here within so many seconds: platforms send theirs at once, a slower client holds a connection."""
HANDLE_S: Final = 2.5
"""Everything after the body. Slack allows 3 s from its first byte to our answer, so half a second is left for the
network (channel facts, Slack, "Ack and retry")."""
READY_S: Final = 2.0
"""How long `/readyz` waits for Redis."""
BUSY_RETRY_S: Final = 2
"""`Retry-After` of an answer 503 for which nobody named a time."""
MAX_UNDER_WAY: Final = 512
"""Hooks handled at once: with bodies of 1 MiB the process then holds about half a gigabyte at worst. Beyond it the
oldest whose body is not here yet gives way; where there is none, the new one is refused."""

Reason: TypeAlias = Literal["bad_signature", "malformed", "too_large", "overloaded", "full"]

_log = logger("ingest")


class _Refusal(Exception):
    """An answer other than 200. `counted`: the reason for `events_rejected_total`, None where it is nobody's event."""

    def __init__(
        self, status: int, code: str, detail: str, counted: Reason | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.detail = detail
        self.counted: Reason | None = counted
        self.retry_after_s = retry_after_s

    def response(self) -> JSONResponse:
        headers = {} if self.retry_after_s is None else {"retry-after": str(max(1, math.ceil(self.retry_after_s)))}
        return JSONResponse({"error": self.code, "detail": self.detail}, self.status, headers)


class Hooks:
    """What happens to one webhook request."""

    def __init__(
        self,
        settings_now: Callable[[], Settings],
        publisher: PublisherPort,
        clock: Clock,
        channel_named: Callable[[str], Channel],
    ) -> None:
        self._settings_now = settings_now
        self._publisher = publisher
        self._clock = clock
        self._channel_named = channel_named
        self._under_way = 0
        self._reading: dict[asyncio.Timeout, None] = {}

    async def __call__(self, request: Request) -> Response:
        """Answer one request; an exception of ours never reaches the client or ends the process."""
        channel = ""
        self._under_way += 1
        try:
            account = self._account(request.path_params["account"])
            channel = account.channel
            if self._under_way > MAX_UNDER_WAY and not self._slowest_gives_way():
                raise _too_many()
            body = await self._body(request)
            hook = _hook_request(request, body)
            return await self._clock.wait_for(self._handle(hook, account), HANDLE_S)
        except _Refusal as refusal:
            _count(channel, refusal)
            return refusal.response()
        except TimeoutError:
            late = _Refusal(503, "too_slow", "the server was too slow: send it again", "overloaded", BUSY_RETRY_S)
            _count(channel, late)
            return late.response()
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:
            _log.error("hook_failed", channel=channel, exc_info=error)
            return _Refusal(500, "internal", "this is a fault of Millstream: see its log").response()
        finally:
            self._under_way -= 1

    def _account(self, account_id: str) -> AccountSettings:
        account = self._settings_now().account(account_id)
        if account is None or account.used_transport != "webhook" or account.channel not in channels.BUILT:
            raise _Refusal(
                404, "unknown_account", "no account with this id takes webhooks: compare the URL with the configuration"
            )
        return account

    async def _body(self, request: Request) -> bytes:
        limit = self._settings_now().ingest.max_body_bytes
        too_large = _Refusal(413, "too_large", f"the body is larger than {limit} bytes", "too_large")
        declared = request.headers.get("content-length", "")
        if declared.isascii() and declared.isdigit() and len(declared) < 20 and int(declared) > limit:
            raise too_large

        async def read() -> bytes:
            body = bytearray()
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise too_large
            return bytes(body)

        async def read_in_time() -> bytes:
            try:
                return await self._clock.wait_for(read(), BODY_S)
            except TimeoutError:
                detail = f"the body was not here within {BODY_S:g} s"
                raise _Refusal(408, "body_timeout", detail, "malformed") from None

        place = asyncio.timeout(None)
        self._reading[place] = None
        try:
            async with place:
                body = await read_in_time()
            if place not in self._reading:  # the body came just when it had to give way
                raise _too_many()
        except TimeoutError:
            raise _too_many() from None
        finally:
            self._reading.pop(place, None)
        return body

    def _slowest_gives_way(self) -> bool:
        """Refuse the request whose body has been awaited for the longest; False where no body is awaited."""
        place = next(iter(self._reading), None)
        if place is None:
            return False
        del self._reading[place]
        place.reschedule(asyncio.get_running_loop().time())
        return True

    async def _handle(self, hook: HookRequest, account: AccountSettings) -> Response:
        channel = self._channel_named(account.channel)
        received_at_ms = self._clock.now_ms()
        try:
            channel.verify(hook, account, received_at_ms)
            # A channel parses the body to find a handshake: its depth is known before.
            check_depth(hook.body.decode("utf-8", "replace"))
            answer = channel.handshake(hook, account)
            if answer is not None:
                metrics.events_received.labels(account.channel, "handshake").inc()
                return Response(answer.body, answer.status, media_type=answer.content_type)
            if hook.method != "POST":
                raise _Refusal(405, "method_not_allowed", "events are sent with POST")
            messages = channel.normalise(parse_json(hook.body), account)
            await self._accept(messages, received_at_ms)
        except Unauthorised:
            raise _Refusal(
                401,
                "bad_signature",
                "the signature or secret does not hold: compare the account's",
                "bad_signature",
            ) from None
        except Malformed as error:
            raise _Refusal(400, "malformed", str(error), "malformed") from None
        count_received(account.channel, messages)
        return Response(channel.accepted.body, channel.accepted.status, media_type=channel.accepted.content_type)

    async def _accept(self, messages: list[Message], received_at_ms: int) -> None:
        if not messages:
            return
        try:
            await self._publisher.accept(messages, received_at_ms)
        except Overloaded as error:
            raise _Refusal(
                503, "overloaded", f"{error}: send it again later", overload_reason(error), error.retry_after_s
            ) from None
        except Unavailable:
            raise _Refusal(
                503, "unavailable", "the store does not answer: send it again later", "overloaded", BUSY_RETRY_S
            ) from None


def _too_many() -> _Refusal:
    return _Refusal(503, "overloaded", "too many requests at once: send again", "overloaded", BUSY_RETRY_S)


def _count(channel: str, refusal: _Refusal) -> None:
    if refusal.counted is not None:
        metrics.events_rejected.labels(channel, refusal.counted).inc()
        _log.info("event_rejected", channel=channel, reason=refusal.counted, status=refusal.status, code=refusal.code)


def _hook_request(request: Request, body: bytes) -> HookRequest:
    headers = dict[str, str]()
    for name, value in request.headers.items():
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return HookRequest(request.method, headers, dict(request.query_params), body)


def make_app(
    settings_now: Callable[[], Settings],
    publisher: PublisherPort,
    clock: Clock,
    alive: Callable[[], bool],
    ready: Callable[[], Awaitable[bool]],
    channel_named: Callable[[str], Channel] = channels.channel,
) -> Starlette:
    """The ASGI application.

    `settings_now` gives the configuration in force. `alive` speaks for this process alone, `ready` also for Redis; the
    latter may raise MillstreamError or OSError, which means no. Nothing is acknowledged before `publisher` took it.
    """

    async def livez(_: Request) -> Response:
        return JSONResponse({"alive": True}) if alive() else JSONResponse({"alive": False}, 503)

    async def readyz(_: Request) -> Response:
        async def ask() -> bool:
            return await ready()

        try:
            yes = await clock.wait_for(ask(), READY_S)
        except (TimeoutError, OSError, MillstreamError):
            yes = False
        return JSONResponse({"ready": yes}, 200 if yes else 503)

    rendering = asyncio.Lock()

    async def exposition(_: Request) -> Response:
        # It takes milliseconds of work: many at once would keep the webhooks waiting.
        async with rendering:
            text = await asyncio.to_thread(metrics.render)
        return Response(text, media_type=metrics.CONTENT_TYPE)

    hooks = Hooks(settings_now, publisher, clock, channel_named)

    async def hook(request: Request) -> Response:
        return await hooks(request)

    app = Starlette(
        routes=[
            Route("/hooks/{account}", hook, methods=["GET", "POST"]),
            Route("/livez", livez),
            Route("/readyz", readyz),
            Route("/metrics", exposition),
        ],
        exception_handlers={HTTPException: _http_error},
    )
    # A platform does not follow redirects: another path is another path.
    app.router.redirect_slashes = False
    return app


def _http_error(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    code, detail = {
        404: ("not_found", "there is nothing here: webhooks go to /hooks/{account}"),
        405: ("method_not_allowed", "events are sent with POST"),
    }.get(status, ("refused", "the request was not understood"))
    headers = error.headers if isinstance(error, HTTPException) else None
    return JSONResponse({"error": code, "detail": detail}, status, headers)
