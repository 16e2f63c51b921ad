"""The network behind the channels: one request at a time, never repeated, never redirected."""

import asyncio
import time
from collections.abc import Callable, Mapping

import httpx

from shared.channels.body import write_json
from shared.channels.port import Call, Json, PlatformResponse
from shared.errors import EffectUnknown, MillstreamError, Refused, Transient

CONNECT_S = 5.0
"""Longest wait for a connection: as long as a lookup may take at all (behaviour.md, section 3)."""

Observe = Callable[[str, str, float], None]
"""Told of every request: its call, its HTTP status (or refused, not_connected, unknown, cancelled), seconds."""


def new_client() -> httpx.AsyncClient:
    """A client for one event loop, to be shared by all accounts of it and closed with `aclose()`.

    Its connections stay open for 5 s at most: a send on one that the platform is just closing would end as unknown.
    """
    return httpx.AsyncClient(
        follow_redirects=False,
        limits=httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=5.0),
        headers={"user-agent": "millstream"},
    )


class HttpApi:
    """`PlatformApi` over HTTP for one account.

    `observe` gets numbers and closed words only. Texts of the errors raised hold neither URL nor body, since a URL may
    hold a token. Without `client` an own one is made on first use; `aclose` closes only that.
    """

    def __init__(
        self, account_id: str, channel: str, observe: Observe | None = None, client: httpx.AsyncClient | None = None
    ) -> None:
        self.account_id = account_id
        self.channel = channel
        self._observe = observe
        self._client = client
        self._owned: httpx.AsyncClient | None = None

    async def aclose(self) -> None:
        """Close the client that this object made itself."""
        if self._owned is not None:
            await self._owned.aclose()
            self._owned = None

    async def request(
        self,
        call: Call,
        method: str,
        url: str,
        *,
        ref: str = "",
        headers: Mapping[str, str] | None = None,
        json: Json = None,
        params: Mapping[str, str] | None = None,
        data: Mapping[str, str] | None = None,
        timeout_s: float = 10.0,
        max_bytes: int = 4_194_304,
    ) -> PlatformResponse:
        """Send one request and read its answer within `timeout_s`.

        Raises Transient when the connection was never made, Refused when the request itself cannot be sent, and
        EffectUnknown for everything after its first byte: time out, broken connection, an answer beyond `max_bytes`.
        `ref` is of use to scripted platforms only.
        """
        del ref
        started = time.monotonic()
        outcome = "cancelled"
        try:
            response = await self._exchange(method, url, headers, json, params, data, timeout_s, max_bytes)
            outcome = str(response.status)
            return response
        except MillstreamError as error:
            outcome = _WORDS.get(type(error), "unknown")
            raise
        finally:
            if self._observe is not None:
                self._observe(call, outcome, time.monotonic() - started)

    async def _exchange(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None,
        json: Json,
        params: Mapping[str, str] | None,
        data: Mapping[str, str] | None,
        timeout_s: float,
        max_bytes: int,
    ) -> PlatformResponse:
        client = self._client or self._own_client()
        begun = _Begun()
        content: bytes | None = None
        sent_headers = dict(headers or {})
        if json is not None:
            content = write_json(json)
            sent_headers["content-type"] = "application/json; charset=utf-8"
        try:
            async with (
                asyncio.timeout(timeout_s),
                client.stream(
                    method,
                    url,
                    headers=sent_headers,
                    params=dict(params) if params else None,
                    content=content,
                    data=dict(data) if data else None,
                    timeout=httpx.Timeout(timeout_s, connect=min(CONNECT_S, timeout_s)),
                    extensions={"trace": begun.trace},
                ) as answer,
            ):
                return PlatformResponse(answer.status_code, dict(answer.headers), await _read(answer, max_bytes))
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError) as error:
            raise Transient(f"no connection ({type(error).__name__})") from None
        except (httpx.UnsupportedProtocol, httpx.InvalidURL, httpx.LocalProtocolError, httpx.CookieConflict) as error:
            raise Refused(f"the request cannot be sent ({type(error).__name__})") from None
        except (httpx.HTTPError, httpx.StreamError, TimeoutError, OSError) as error:
            if begun.value:
                raise EffectUnknown(f"no full answer ({type(error).__name__})") from None
            raise Transient(f"no connection ({type(error).__name__})") from None

    def _own_client(self) -> httpx.AsyncClient:
        if self._owned is None:
            self._owned = new_client()
        return self._owned


_WORDS: dict[type[MillstreamError], str] = {
    Transient: "not_connected",
    Refused: "refused",
    EffectUnknown: "unknown",
}


class _Begun:
    """Whether the first byte of the request may have left, as told by the transport's trace."""

    def __init__(self) -> None:
        self.value = False

    async def trace(self, event: str, info: Mapping[str, object]) -> None:
        """Called by the transport. A proxy's CONNECT is not the request itself."""
        if event.endswith("send_request_headers.started"):
            request = info.get("request")
            self.value = self.value or getattr(request, "method", b"") != b"CONNECT"


async def _read(answer: httpx.Response, max_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in answer.aiter_bytes():
        body += chunk
        if len(body) > max_bytes:
            raise EffectUnknown("the answer is larger than allowed")
    return bytes(body)
