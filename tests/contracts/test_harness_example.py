"""The documentation of the HTTP harness: its example as a real process, asked by the real harness, and its bodies."""

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from pydantic import SecretStr

from shared.channels.port import Part
from shared.clock import ServerClock
from shared.harness.http import Http
from shared.harness.http_wire import HistoryBody
from shared.harness.port import Answer, HarnessRefused, Turn, TurnEvent
from shared.settings import HarnessSettings

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLE = DOCS / "examples" / "http_harness.py"
TURN = Turn(id="t", session="s", system=(), prompt="p", text="hello 你好", source={})


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, str(EXAMPLE), "0"],
        env=os.environ | {"HARNESS_SECRET": "invented"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://127\.0\.0\.1:\d+/turns", process.stdout.readline())
            assert found
            yield found.group()
        finally:
            process.terminate()


def ignore(_: TurnEvent) -> None:
    """Nobody listens."""


def harness(url: str, key: str = "invented") -> Http:
    return Http(
        "example",
        HarnessSettings(kind="http", url=url, secret=SecretStr(key), timeout_s=10),
        ServerClock(lambda: time.time_ns() // 1_000_000),
    )


def test_the_example_answers(url: str) -> None:
    assert asyncio.run(harness(url).ask(TURN, ignore)) == Answer((Part("text", "HELLO 你好"),))


def test_the_example_takes_no_forged_request(url: str) -> None:
    with pytest.raises(HarnessRefused, match="401"):
        asyncio.run(harness(url, "wrong").ask(TURN, ignore))


def test_the_example_keeps_no_history(url: str) -> None:
    # The base class answers 501 to a method that it has not.
    assert asyncio.run(harness(url).history("s", 1, 1)).lines == ()


def test_the_example_is_short() -> None:
    assert len(EXAMPLE.read_text().splitlines()) <= 45


BLOCKS = re.findall(r"```json (\w+)\n(.*?)```", (DOCS / "harness-http.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize(("kind", "text"), BLOCKS)
def test_what_the_documentation_shows_is_valid(kind: str, text: str) -> None:
    if kind == "history":
        assert HistoryBody.model_validate_json(text).page(2**53, 1).lines
    else:
        jsonschema.validate(json.loads(text), json.loads((DOCS / "schemas" / f"{kind}.schema.json").read_text()))


def test_the_documentation_shows_every_body() -> None:
    assert [kind for kind, _ in BLOCKS] == ["turn", "answer", "turn", "history"]
