"""What a world changes around itself while it runs: it hears every log line, logs are short, the mock has an index."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from unittest import mock

import structlog

from shared import channels
from tests.simulation.invariants import LOG_MAX, Broken
from workers.engagement import effects as engagement

if TYPE_CHECKING:
    from tests.simulation.world import World

EXPECTED = ("ConnectionError", "TimeoutError", "OutOfMemoryError")
"""What a stage may fail over: the server."""


@contextmanager
def listening(world: "World") -> Generator[None]:
    """Take every log line while it stands; a stage that fails over anything but the server is broken."""

    def heard(_logger: Any, method: str, event: Any) -> Any:
        if method == "error" and event.get("error") not in EXPECTED and event["event"] != "move_failed":
            world.broken = world.broken or Broken(f"nothing fails by itself: {event}")
        raise structlog.DropEvent

    before = structlog.get_config()
    built = channels._CHANNELS  # pyright: ignore[reportPrivateUsage]
    kept = replace(built["mock"], limits=replace(built["mock"].limits, keeps_index=True))
    structlog.configure(processors=[heard], cache_logger_on_first_use=False)
    try:
        with mock.patch.dict(built, mock=kept), mock.patch.object(engagement, "LOG_ROWS", LOG_MAX):
            yield
    finally:
        structlog.configure(**before)
