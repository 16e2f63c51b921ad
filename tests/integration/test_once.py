"""The same event a thousand times at once: one turn, one reply, 999 duplicates."""

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest

from tests.chaos.harness import Harness, between
from tests.chaos.load import every_message, tables
from tests.integration.world import STAGES, server, world
from tests.platforms.callback import Callback
from tests.platforms.emulator import running

TIMES = 1_000
AT_ONCE = 200
"""Connections, each posting one event after another."""


async def _post(port: int, path: str, body: bytes, times: int) -> list[int]:
    """Over one connection of its own: clients with a pool are slower here than the edge is."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    found: list[int] = []
    for _ in range(times):
        writer.write(head + body)
        found.append(int((await reader.readline()).split()[1]))
        while await reader.readline() != b"\r\n":
            pass
    writer.close()
    await writer.wait_closed()
    return found


async def _post_all(port: int, path: str, body: bytes) -> Counter[int]:
    posts = (_post(port, path, body, TIMES // AT_ONCE) for _ in range(AT_ONCE))
    return Counter(status for statuses in await asyncio.gather(*posts) for status in statuses)


@pytest.mark.xdist_group("chaos")
def test_an_event_that_comes_a_thousand_times_at_once_is_one_turn(tmp_path: Path) -> None:
    event = {"message_id": "m1", "sender": "p0", "text": "when is low water?"}
    with (
        running(Harness(between(1, 5, 1))) as harness,
        running(Callback()) as callback,
        server(tmp_path) as on,
        world(tmp_path, on, **tables(harness, callback, people=1)) as now,
    ):
        now.start(*STAGES, "admission", "ingest", "keeper")
        posted = asyncio.run(_post_all(now.settings.ingest.port, "/hooks/demo", json.dumps(event).encode()))
        assert posted == {200: TIMES}
        now.rest(60)
        [ids] = every_message(now).values()
        assert now.dispositions(ids) == {"answered": 1, "duplicate": TIMES - 1}
        assert list(harness.calls.values()) == [1]
        assert [sent.text for sent in callback.sends] == ["re: when is low water?"]
        assert now.left() == {}
