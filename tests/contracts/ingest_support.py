"""What the tests of the edge need: an in-memory publisher that keeps the port's promises, a quick clock, HTTP."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx
from starlette.applications import Starlette

from ingest.app import make_app
from ingest.port import Accepted, Overloaded, PublisherPort, Unavailable
from shared import metrics
from shared.envelope import new_id
from shared.message import Message
from shared.settings import Settings, from_mapping

T = TypeVar("T")

NOW_S = 1_790_000_111
SIGNING = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
TELEGRAM_SECRET = "tide-secret_1"

SETTINGS = {
    "accounts": [
        {"id": "sl", "channel": "slack", "self_id": "U0BOT", "credentials": {"signing_secret": SIGNING, "token": "x"}},
        {
            "id": "tg",
            "channel": "telegram",
            "credentials": {"secret": TELEGRAM_SECRET, "token": "7100000042:AA"},
        },
        {"id": "poll", "channel": "telegram", "transport": "poll", "credentials": {"token": "7100000043:AA-invented"}},
        {"id": "demo", "channel": "mock"},
        {"id": "later", "channel": "qq"},
    ]
}


class QuickClock:
    """Now stands still at `NOW_S`; a wait that is limited to n seconds is limited to n / `speed`."""

    def __init__(self, speed: float = 1.0) -> None:
        self.speed = speed
        self.slept = list[float]()

    def now_ms(self) -> int:
        return NOW_S * 1000

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(seconds / self.speed)

    async def wait_for(self, work: Awaitable[T], seconds: float) -> T:
        return await asyncio.wait_for(work, seconds / self.speed)


class MemoryPublisher:
    """Takes messages into a list. `trouble` is raised instead, `gate` holds accept back until it is set."""

    def __init__(self) -> None:
        self.messages = list[Message]()
        self.batches = list[int]()
        self.trouble: Overloaded | Unavailable | RuntimeError | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked = asyncio.Event()

    async def accept(self, messages: Sequence[Message], received_at_ms: int) -> Accepted:
        self.asked.set()
        await self.gate.wait()
        if self.trouble is not None:
            raise self.trouble
        self.messages += messages
        self.batches.append(len(messages))
        return Accepted(tuple(new_id(received_at_ms) for _ in messages))


def settings(**ingest: int) -> Settings:
    return from_mapping({**SETTINGS, "ingest": ingest})


def app(publisher: PublisherPort, clock: QuickClock | None = None, config: Settings | None = None) -> Starlette:
    metrics.start(("ingest",), ("mock", "slack", "telegram"))
    used = config or settings()

    async def ready() -> bool:
        return True

    return make_app(lambda: used, publisher, clock or QuickClock(), lambda: True, ready)


@asynccontextmanager
async def client(application: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(application, raise_app_exceptions=True)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as made:
        yield made


def run(work: Callable[[], Awaitable[T]]) -> T:
    async def main() -> T:
        return await asyncio.wait_for(work(), 60)

    return asyncio.run(main())


def slack_headers(body: bytes, timestamp: str = str(NOW_S), secret: str = SIGNING) -> dict[str, str]:
    digest = hmac.new(secret.encode(), b"v0:" + timestamp.encode() + b":" + body, hashlib.sha256).hexdigest()
    return {
        "x-slack-request-timestamp": timestamp,
        "x-slack-signature": f"v0={digest}",
        "content-type": "application/json",
    }


def slack_message(ts: str = "1790000110.000119", text: str = "When is low water?") -> bytes:
    event = {"type": "message", "channel": "D0TIDE", "channel_type": "im", "user": "U0MILA", "text": text, "ts": ts}
    return encode({"type": "event_callback", "event_id": "Ev0TIDE01", "team_id": "T0", "event": event})


def telegram_update(
    update_id: int = 820000001, message_id: int = 1001, text: str = "When is low water?"
) -> dict[str, Any]:
    mila = {"id": 510000111, "is_bot": False, "first_name": "Mila"}
    chat = {"id": 510000111, "first_name": "Mila", "type": "private"}
    message = {"message_id": message_id, "from": mila, "chat": chat, "date": NOW_S, "text": text}
    return {"update_id": update_id, "message": message}


def mock_message(message_id: str = "m1", text: str = "When is low water?") -> dict[str, Any]:
    return {"message_id": message_id, "chat": "harbour", "chat_type": "private", "sender": "mila", "text": text}


def encode(value: object) -> bytes:
    return json.dumps(value).encode()


def counted(name: str, **labels: str) -> float:
    return metrics.REGISTRY.get_sample_value(f"millstream_{name}", labels) or 0.0
