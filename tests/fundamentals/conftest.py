"""What every fundamental uses: a bot, and a way to play a story to it."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

from shared.redis.client import Redis, connect
from shared.redis.embedded import Embedded
from workers.ops.scenario.format import load_text
from workers.ops.scenario.report import failure_lines
from workers.ops.scenario.run import run_one

Play: TypeAlias = Callable[[str], None]

THE_BOT = """
name: a fundamental
config:
  accounts:
    - {id: bot, channel: telegram, self_id: "8001", members: ["2"]}
"""
"""A bot on Telegram. Number 2 is a member, everybody else a guest; chat "-100" is a group."""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    with Embedded.start(tmp_path_factory.mktemp("redis"), durable=False) as running:
        yield running


@pytest.fixture
def client(server: Embedded) -> Iterator[Redis]:
    made = connect(server.url)
    yield made
    made.close()


@pytest.fixture
def play(server: Embedded, client: Redis) -> Play:
    """Play a story (docs/scenarios.md) to the bot, or to the bots of its own `config`. What is expected and
    does not come fails the test."""

    def run(story: str) -> None:
        text = f"name: a fundamental\n{story}" if "\nconfig:" in story else THE_BOT + story
        (scenario,) = load_text(text, "story")
        result = run_one(scenario, client, server.url)
        assert result.ok, "\n".join(failure_lines(result))

    return run
