"""/livez, /readyz and /metrics."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from ingest_support import MemoryPublisher, QuickClock, client, run, settings

from ingest.app import make_app
from ingest.port import Unavailable
from shared import metrics


def get(path: str, alive: bool, ready: Callable[[], Awaitable[bool]]) -> tuple[int, str, str]:
    async def work() -> tuple[int, str, str]:
        config = settings()
        application = make_app(lambda: config, MemoryPublisher(), QuickClock(speed=20), lambda: alive, ready)
        async with client(application) as http:
            response = await http.get(path)
            return response.status_code, response.text, response.headers["content-type"]

    return run(work)


async def yes() -> bool:
    return True


async def no() -> bool:
    return False


async def gone() -> bool:
    raise Unavailable("connection lost")


async def refused() -> bool:
    raise ConnectionRefusedError


async def hangs() -> bool:
    await asyncio.Event().wait()
    return True


@pytest.mark.parametrize(("alive", "status"), [(True, 200), (False, 503)])
def test_livez_asks_nobody_else(alive: bool, status: int) -> None:
    assert get("/livez", alive, gone)[0] == status


@pytest.mark.parametrize(("ready", "status"), [(yes, 200), (no, 503), (gone, 503), (refused, 503), (hangs, 503)])
def test_readyz_needs_redis(ready: Callable[[], Awaitable[bool]], status: int) -> None:
    assert get("/readyz", True, ready)[0] == status


def test_metrics_are_in_prometheus_text_format() -> None:
    metrics.start(("ingest",), ("mock",))
    status, text, kind = get("/metrics", True, yes)
    assert status == 200
    assert kind.startswith("text/plain; version=0.0.4")
    assert "# TYPE millstream_events_received_total counter" in text
