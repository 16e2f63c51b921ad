"""What the contract tests of the HTTP harness share: a turn, its answer, and the harness under test."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from shared.channels.port import Part
from shared.harness.http import Http
from shared.harness.port import Answer, ContextRow, Turn, TurnAttachment, TurnEvent
from shared.settings import HarnessSettings
from tests.platforms.harness_server import LoopbackServer, SteppedClock

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
SECRET = "invented-secret"
TURN = Turn(
    id="01J0000000000000000000TURN",
    session="session-1",
    system=("be kind",),
    prompt="<dsh_im_source>{}</dsh_im_source>\n\n你好",
    text="你好",
    source={"channel": "mock", "conversationType": "direct", "senderId": "2"},
    reply_to={"note": "n", "content": "原文"},
    attachments=(
        TurnAttachment("image", "a.png", "image/png", 1, "ab" * 32, reader=lambda: b"\x00"),
        TurnAttachment("file", "b.pdf", unavailable="too-large"),
    ),
    context=(ContextRow("小明", "早", 5),),
    title="你好",
    attempt=2,
)
WHOLE = {"parts": [{"type": "text", "text": "好的"}]}
GOOD = Answer((Part("text", "好的"),))


def harness(url: str, clock: SteppedClock | None = None, **settings: Any) -> Http:
    given = {"kind": "http", "url": url, "secret": SecretStr(SECRET), "timeout_s": 5} | settings
    return Http("agent", HarnessSettings.model_validate(given), clock or SteppedClock())


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def ignore(_: TurnEvent) -> None:
    """Nobody listens."""


def ask(server: LoopbackServer, **settings: Any) -> Answer:
    return run(harness(server.url, **settings).ask(TURN, ignore))


EVENTS = (
    'event: progress\ndata: {"step": 1}\n\nevent: delta\ndata: {"text": "你"}\n\n'
    'event: delta\ndata: {"text": "好😀"}\n\nevent: done\ndata: {}\n\n'
).encode()
