"""The real channels send through a scripted platform: what they write is read back as a person would see it."""

import asyncio
from types import ModuleType
from typing import Any

import pytest

from shared.channels.mock import outbound as mock
from shared.channels.port import Part, Switches, Target
from shared.channels.slack import outbound as slack
from shared.channels.telegram import outbound as telegram
from shared.clock import ServerClock
from shared.settings import AccountSettings, from_mapping
from shared.settings_scenario import scenario_mapping
from workers.ops.scenario.model import PlatformAnswer
from workers.ops.scenario.result import SentRow
from workers.ops.scenario.scripted import ScriptedPlatforms, with_credentials

TEXT = "一 <b> & 二"
CHANNELS: dict[str, tuple[ModuleType, Target, SentRow]] = {
    "telegram": (
        telegram,
        Target("-100", "group", thread_id="31", reply_to="77"),
        SentRow(TEXT, "-100", thread="31", reply_to="77", account="a"),
    ),
    "slack": (
        slack,
        Target("C07HARBOR01", "group", thread_id="1.5", reply_to="1.7"),
        SentRow(TEXT, "C07HARBOR01", thread="1.5", reply_to="1.5", account="a"),
    ),
    "mock": (
        mock,
        Target("room", "group", thread_id="t", reply_to="5"),
        SentRow(TEXT, "room", thread="t", reply_to="5", account="a"),
    ),
}


def account(channel: str) -> AccountSettings:
    config = with_credentials({"accounts": [{"id": "a", "channel": channel}]})
    return from_mapping(scenario_mapping(config)).accounts[0]


def send(channel: str, *answers: PlatformAnswer) -> tuple[Any, ScriptedPlatforms]:
    outbound, target, _ = CHANNELS[channel]
    platforms = ScriptedPlatforms(answers, ServerClock(lambda: 1_790_000_000_000))
    api = platforms.api("a", channel)
    delivery = asyncio.run(outbound.send(target, Part("text", TEXT), "nonce", account(channel), api, Switches()))
    return delivery, platforms


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_send_that_is_not_scripted_succeeds(channel: str) -> None:
    delivery, platforms = send(channel)
    assert (delivery.state, len(delivery.ids)) == ("sent", 1)
    assert platforms.sent == [CHANNELS[channel][2]]
    assert platforms.calls == {"send": 1}


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize(
    ("answer", "state", "retry"),
    [
        (PlatformAnswer("a", "send", status=403), "not-sent", False),
        (PlatformAnswer("a", "send", status=429, retry_after_ms=3_000), "not-sent", True),
        (PlatformAnswer("a", "send", status=502), "unknown", False),
        (PlatformAnswer("a", "send", error="refused"), "not-sent", True),
        (PlatformAnswer("a", "send", error="connection"), "unknown", False),
    ],
)
def test_r47_what_the_platform_answers_decides(channel: str, answer: PlatformAnswer, state: str, retry: bool) -> None:
    delivery, platforms = send(channel, answer)
    assert (delivery.state, delivery.retry) == (state, retry)
    assert platforms.sent == []


def test_a_wait_that_the_platform_asks_for_arrives() -> None:
    for channel in ("telegram", "slack"):
        delivery, _ = send(channel, PlatformAnswer("a", "send", status=429, retry_after_ms=3_000))
        assert delivery.retry_after_s == 3.0
