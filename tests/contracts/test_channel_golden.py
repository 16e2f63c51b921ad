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
from workers.quotes.policy import unresolved

COUNTS = {
    "dingtalk": 19, "discord": 20, "feishu": 18, "mock": 0, "qq": 16, "slack": 18, "telegram": 22, "wecom": 16,
    "weixin": 13, "whatsapp": 28,
}  # fmt: skip
"""Golden events by channel: none may be lost."""

LOGIN = {
    "code": 0, "tenant_access_token": "t-invented", "access_token": "t-invented", "expire": 7200, "expires_in": "7200",
}  # fmt: skip
"""What a platform answers that lends access tokens."""

NO_MESSAGE = [path for path in cases(*sorted(BUILT)) if load(path)["expect"]["message_id"] is None]
"""Receipts: what the fixture says of them is that there is no message."""
FILES = [path for path in cases(*sorted(BUILT)) if path not in NO_MESSAGE]


def normalised(path: Path) -> tuple[dict[str, Any], Message]:
    fixture = load(path)
    messages = channel(fixture["channel"]).normalise(fixture["event"], account_of(fixture))
    assert len(messages) == 1 + len(fixture.get("expect_more", ()))
    return fixture, messages[0]


def lookups(path: Path, via: str) -> list[dict[str, Any]]:
    """What a fixture's quote may be looked up with, and what then must come."""
    fixture = load(path)
    found = [fixture[key] for key in ("lookup",) if key in fixture] + fixture.get("lookup_variants", [])
    return [each for each in found if each["via"] == via]


class ServedAnswer:
    """A platform that gives one answer and writes down what it was asked."""

    def __init__(self, status: int, body: Any) -> None:
        self.status = status
        self.body = json.dumps(body).encode()
        self.asked: list[tuple[str, str, str, str, dict[str, str]]] = []

    async def request(
        self, call: Call, method: str, url: str, *, ref: str = "", params: Mapping[str, str] | None = None, **_: Any
    ) -> PlatformResponse:
        if call == "login":
            return PlatformResponse(200, {}, json.dumps(LOGIN).encode())
        self.asked.append((call, method, url, ref, dict(params or {})))
        return PlatformResponse(self.status, {"content-type": "application/json"}, self.body)


def test_every_fixture_of_the_built_channels_is_here() -> None:
    assert {name: len(cases(name)) for name in BUILT} == {name: COUNTS[name] for name in BUILT}


@pytest.mark.parametrize("path", FILES, ids=case_id)
def test_event_is_normalised_as_the_fixture_says(path: Path) -> None:
    fixture, message = normalised(path)
    assert differences(message, fixture["expect"]) == {}
    more = channel(fixture["channel"]).normalise(fixture["event"], account_of(fixture))[1:]
    assert [differences(*pair) for pair in zip(more, fixture.get("expect_more", ()), strict=True)] == [{}] * len(more)


@pytest.mark.parametrize("path", NO_MESSAGE, ids=case_id)
def test_a_receipt_is_no_message(path: Path) -> None:
    fixture = load(path)
    assert fixture["expect"]["action"] == "ignore"
    assert channel(fixture["channel"]).normalise(fixture["event"], account_of(fixture)) == []


@pytest.mark.parametrize("path", FILES, ids=case_id)
def test_event_comes_through_json_unchanged(path: Path) -> None:
    _, message = normalised(path)
    assert Message.model_validate_json(message.model_dump_json(exclude_defaults=True)) == message


@pytest.mark.parametrize("path", [path for path in FILES if load(path)["expect"].get("redelivery_action")], ids=case_id)
def test_c6_c13_c17_second_copy_is_known_by_a_key(path: Path) -> None:
    fixture, first = normalised(path)
    assert fixture["expect"]["redelivery_action"] == "duplicate"
    assert "redelivery" in fixture
    for copy in (fixture["redelivery"], *fixture.get("redelivery_more", ())):
        [second] = channel(fixture["channel"]).normalise(copy["event"], account_of(fixture))
        shared = set(first.keys) & set(second.keys)
        assert shared
        assert second.identity == first.identity
        assert sorted(second.keys) == sorted(copy.get("dedupe_keys", second.keys))


@pytest.mark.parametrize("path", [path for path in FILES if lookups(path, "platform")], ids=case_id)
def test_q54_q55_q56_q58_q59_lookup_gives_what_the_fixture_says(path: Path) -> None:
    fixture, message = normalised(path)
    assert message.reply_to is not None
    assert message.reply_to.lookup is not None
    for lookup in lookups(path, "platform"):
        api = ServedAnswer(lookup.get("http_status", 200), lookup["response"])
        wanted = message.reply_to.lookup
        found = asyncio.run(channel(fixture["channel"]).lookup(wanted, message, account_of(fixture), api))
        assert reference_differences(found, lookup["expect_reply_to"]) == {}
        assert found.source == "lookup"
        assert not found.explicit_text
        [(call, method, url, ref, params)] = api.asked
        asked = lookup["request"]
        query = asked.get("params", asked.get("query", {}))
        written = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in query.items()}
        assert (call, ref) == ("get_message", message.reply_to.message_id)
        assert url.endswith(asked.get("path", asked["method"]))
        assert method == "GET"
        assert written.items() <= params.items()


@pytest.mark.parametrize("path", [path for path in FILES if lookups(path, "local")], ids=case_id)
def test_q44_q65_what_only_the_index_could_tell_is_not_delivered(path: Path) -> None:
    _, message = normalised(path)
    assert message.reply_to is not None
    assert message.reply_to.lookup is None or message.reply_to.lookup.via == "index"
    for lookup in lookups(path, "local"):
        if lookup["response"] is None:
            assert reference_differences(unresolved(message.reply_to), lookup["expect_reply_to"]) == {}


@pytest.mark.parametrize("path", FILES, ids=case_id)
def test_stable_key_comes_first(path: Path) -> None:
    fixture, message = normalised(path)
    assert message.keys[0] not in message.windows
    if fixture["channel"] in ("slack", "telegram") and message.action == "process":
        assert message.keys[0] == f"{message.chat_id}:{message.message_id}"
    assert message.channel == fixture["channel"]
