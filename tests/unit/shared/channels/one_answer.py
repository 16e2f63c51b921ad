"""A platform with one scripted answer, and a way to await it, for the channels' unit tests."""

import asyncio
import json
from collections.abc import Awaitable
from typing import Any, TypeVar

from shared.channels.port import Json, PlatformResponse
from shared.errors import MillstreamError

T = TypeVar("T")


class Recorder:
    """The platform: gives one scripted answer, or raises, and writes down what it was asked."""

    def __init__(self, answer: PlatformResponse | MillstreamError) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str, str, Json, Any]] = []

    async def request(
        self, call: str, method: str, url: str, *, json: Json = None, headers: Any = None, **_: Any
    ) -> PlatformResponse:
        self.asked.append((call, method, url, json, headers))
        if isinstance(self.answer, MillstreamError):
            raise self.answer
        return self.answer


def answered(status: int, value: Any = None, **headers: str) -> Recorder:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return Recorder(PlatformResponse(status, headers, body))


def ended(work: Awaitable[T]) -> T:
    async def wait() -> T:
        return await work

    return asyncio.run(wait())
