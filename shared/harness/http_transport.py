"""Signed requests to an HTTP harness, one at a time, and what their failures mean."""

import hashlib
import hmac
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

import httpx

from shared.clock import Clock
from shared.errors import EffectUnknown, Transient
from shared.harness.loops import PerLoop
from shared.harness.port import HarnessRefused
from shared.harness.replies import ANSWER_BYTES, retry_after_s

CONNECT_S = 5.0
"""Seconds for a connection, the same as for Redis (design.md, section 3)."""


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """`v1=` and the hex HMAC-SHA256 of `timestamp.body`."""
    digest = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256)
    return f"v1={digest.hexdigest()}"


@contextmanager
def failures() -> Generator[None, None, None]:
    """Say what a failed exchange means: Transient when nothing was written, EffectUnknown after that."""
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError) as error:
        raise Transient(f"could not connect: {type(error).__name__}") from error
    except httpx.TransportError as error:
        raise EffectUnknown(f"broken after the request was written: {type(error).__name__}") from error


class Transport:
    """One harness's address. An empty `secret` signs nothing, an empty `token` sends no Authorization."""

    def __init__(self, secret: str, token: str, timeout_s: float, clock: Clock) -> None:
        self._secret = secret
        self._token = token
        self._clock = clock
        timeout = httpx.Timeout(timeout_s, connect=CONNECT_S)
        # A kept connection can be closed by the other side just when a request is written to it. That would look like a
        # broken turn; a new connection costs nothing beside a turn.
        limits = httpx.Limits(max_keepalive_connections=0)

        def client() -> httpx.AsyncClient:
            return httpx.AsyncClient(timeout=timeout, limits=limits, follow_redirects=False)

        self._clients = PerLoop(client, lambda made: made.aclose())

    @asynccontextmanager
    async def exchange(
        self, method: str, url: httpx.URL, body: bytes = b"", key: str = "", timeout_s: float | None = None
    ) -> AsyncGenerator[httpx.Response, None]:
        """Send one request and give its answer with the body unread; it is closed at the end.

        key: the `Idempotency-Key`. Failures of the connection, also while the body is read, are mapped by `failures`.
        """
        timestamp = str(self._clock.now_ms() // 1000)
        headers = {"X-Millstream-Timestamp": timestamp, "Accept-Encoding": "identity"}
        headers["Accept"] = "application/json, text/event-stream"
        if self._secret:
            headers["X-Millstream-Signature"] = signature(self._secret, timestamp, body)
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if key:
            headers["Idempotency-Key"] = key
        if body:
            headers["Content-Type"] = "application/json"
        client = await self._clients.get()
        request = client.build_request(method, url, headers=headers, content=body)
        if timeout_s is not None:
            request.extensions["timeout"] = httpx.Timeout(timeout_s, connect=CONNECT_S).as_dict()
        with failures():
            response = await client.send(request, stream=True)
            try:
                yield response
            finally:
                await response.aclose()

    def check(self, response: httpx.Response) -> None:
        """Raise what a status other than 200 and 202 means."""
        status = response.status_code
        if status == 429 or status >= 500:
            asked = retry_after_s(response.headers.get("retry-after"), self._clock.now_ms())
            raise Transient(f"the harness answered {status}", asked)
        if status not in {200, 202}:
            raise HarnessRefused(f"the harness answered {status}")
        if response.headers.get("content-encoding", "identity").lower() not in {"", "identity"}:
            # Compressed bytes could grow beyond every limit, and nobody asked for them.
            raise HarnessRefused("the answer is compressed")

    async def body(self, response: httpx.Response) -> bytes:
        """The whole body. Raises HarnessRefused beyond 1 MiB."""
        pieces: list[bytes] = []
        size = 0
        async for piece in response.aiter_raw():
            size += len(piece)
            if size > ANSWER_BYTES:
                raise HarnessRefused("the answer is larger than 1 MiB")
            pieces.append(piece)
        return b"".join(pieces)
