"""Every golden event of the built channels, through the real parser and, where the fixture has one, the real lookup."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from shared.channels import BUILT, channel
from shared.channels.port import Call, PlatformResponse
from shared.message import Message
from tests.contracts.golden import account_of, case_id, cases, differences, load, reference_differences

FILES = cases("telegram", "slack")


def normalised(path: Path) -> tuple[dict[str, Any], Message]:
    fixture = load(path)
    [message] = channel(fixture["channel"]).normalise(fixture["event"], account_of(fixture))
    return fixture, message


class ServedAnswer:
    """A platform that gives one answer and writes down what it was asked."""

    def __init__(self, status: int, body: Any) -> None:
        self.status = status
        self.body = json.dumps(body).encode()
        self.asked: list[tuple[str, str, str, dict[str, str]]] = []

    async def request(
        self, call: Call, method: str, url: str, *, ref: str = "", params: Mapping[str, str] | None = None, **_: Any
    ) -> PlatformResponse:
        self.asked.append((call, url.rsplit("/", 1)[-1], ref, dict(params or {})))
        return PlatformResponse(self.status, {"content-type": "application/json"}, self.body)


def test_every_fixture_of_the_built_channels_is_here() -> None:
    assert len(cases("telegram")) == 22
    assert len(cases("slack")) == 18
    assert frozenset({"telegram", "slack", "mock"}) == BUILT


@pytest.mark.parametrize("path", FILES, ids=case_id)
def test_event_is_normalised_as_the_fixture_says(path: Path) -> None:
    fixture, message = normalised(path)
    assert differences(message, fixture["expect"]) == {}


@pytest.mark.parametrize("path", FILES, ids=case_id)
def test_event_comes_through_json_unchanged(path: Path) -> None:
    _, message = normalised(path)
    assert Message.model_validate_json(message.model_dump_json(exclude_defaults=True)) == message


@pytest.mark.parametrize("path", [path for path in FILES if "redelivery" in load(path)], ids=case_id)
def test_c6_second_copy_has_the_same_stable_key(path: Path) -> None:
    fixture, first = normalised(path)
    [second] = channel(fixture["channel"]).normalise(fixture["redelivery"]["event"], account_of(fixture))
    assert fixture["expect"]["redelivery_action"] == "duplicate"
    assert second.keys[0] == first.keys[0]
    assert second.identity == first.identity


@pytest.mark.parametrize("path", [path for path in FILES if "lookup" in load(path)], ids=case_id)
def test_q54_q55_lookup_gives_what_the_fixture_says(path: Path) -> None:
    fixture, message = normalised(path)
    lookup = fixture["lookup"]
    assert message.reply_to is not None
    assert message.reply_to.lookup is not None
    api = ServedAnswer(lookup["http_status"], lookup["response"])
    found = asyncio.run(channel(fixture["channel"]).lookup(message.reply_to.lookup, message, account_of(fixture), api))
    assert reference_differences(found, lookup["expect_reply_to"]) == {}
    assert found.source == "lookup"
    assert not found.explicit_text
    [(call, method, ref, params)] = api.asked
    wanted = lookup["request"]["params"]
    assert (call, method, ref) == ("get_message", lookup["request"]["method"], wanted["latest"])
    asked = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in wanted.items()}
    assert asked.items() <= params.items()
    assert params["oldest"] == params["latest"]


@pytest.mark.parametrize("path", FILES, ids=case_id)
def test_stable_key_comes_first(path: Path) -> None:
    fixture, message = normalised(path)
    if message.action == "process":
        assert message.keys[0] == f"{message.chat_id}:{message.message_id}"
    assert message.channel == fixture["channel"]
