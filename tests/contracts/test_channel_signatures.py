"""Who may post to a webhook: every vector, and what an account without a secret does (C-22)."""

import json
from typing import Any

import pytest

from shared.channels import channel
from shared.channels.port import HookRequest
from shared.errors import Unauthorised
from shared.settings import AccountSettings
from tests.contracts.golden import FIXTURES

VECTORS = json.loads((FIXTURES / "_vectors" / "west.json").read_text(encoding="utf-8"))


def account(name: str, **more: Any) -> AccountSettings:
    return AccountSettings.model_validate({"id": "acct", "channel": name, **more})


def verified(name: str, request: HookRequest, who: AccountSettings, now_ms: int) -> bool:
    try:
        channel(name).verify(request, who, now_ms)
    except Unauthorised:
        return False
    return True


def hook(body: bytes = b"{}", **headers: str | None) -> HookRequest:
    given = {name.replace("_", "-"): value for name, value in headers.items() if value is not None}
    return HookRequest("POST", given, {}, body)


@pytest.mark.parametrize("vector", VECTORS["slack"], ids=lambda vector: vector["name"])
def test_c22_slack_signature(vector: dict[str, Any]) -> None:
    who = account("slack", credentials={"signing_secret": vector["signing_secret"]})
    request = hook(
        vector["body"].encode(),
        x_slack_request_timestamp=vector["timestamp"],
        x_slack_signature=vector["signature"],
    )
    assert verified("slack", request, who, vector["now"] * 1000) is vector["valid"]


def test_c7_a_slack_retry_is_verified_like_a_first_try() -> None:
    vector = VECTORS["slack"][0]
    who = account("slack", credentials={"signing_secret": vector["signing_secret"]})
    request = hook(
        vector["body"].encode(),
        x_slack_request_timestamp=vector["timestamp"],
        x_slack_signature=vector["signature"],
        x_slack_retry_num="1",
        x_slack_retry_reason="connection_failed",
    )
    assert verified("slack", request, who, vector["now"] * 1000)


@pytest.mark.parametrize("stamp", [None, "", "-1", "1e9", "١٧٩٠٠٠٠١٠١", "9" * 30, " 1790000101", "1790000101.0"])
def test_c22_slack_time_stamp_that_is_no_number(stamp: str | None) -> None:
    vector = VECTORS["slack"][0]
    who = account("slack", credentials={"signing_secret": vector["signing_secret"]})
    request = hook(vector["body"].encode(), x_slack_request_timestamp=stamp, x_slack_signature=vector["signature"])
    assert not verified("slack", request, who, vector["now"] * 1000)


def test_c22_slack_signature_missing_or_not_ascii() -> None:
    vector = VECTORS["slack"][0]
    who = account("slack", credentials={"signing_secret": vector["signing_secret"]})
    for signature in (None, "", "v0=", "v0=é", "\ud83d"):
        request = hook(
            vector["body"].encode(), x_slack_request_timestamp=vector["timestamp"], x_slack_signature=signature
        )
        assert not verified("slack", request, who, vector["now"] * 1000)


@pytest.mark.parametrize("vector", VECTORS["telegram"], ids=lambda vector: vector["name"])
def test_c22_telegram_secret(vector: dict[str, Any]) -> None:
    who = account("telegram", credentials={"secret": vector["configured"]})
    request = hook(x_telegram_bot_api_secret_token=vector["header"])
    assert verified("telegram", request, who, 0) is vector["valid"]


@pytest.mark.parametrize("name", ["telegram", "slack"])
def test_without_a_secret_only_an_insecure_account_takes_requests(name: str) -> None:
    assert not verified(name, hook(), account(name), 0)
    assert verified(name, hook(), account(name, insecure=True), 0)


def test_mock_secret_is_checked_where_there_is_one() -> None:
    who = account("mock", credentials={"secret": "invented"})
    assert verified("mock", hook(x_millstream_secret="invented"), who, 0)
    assert not verified("mock", hook(x_millstream_secret="Invented"), who, 0)
    assert not verified("mock", hook(), who, 0)
    assert verified("mock", hook(), account("mock"), 0)


def test_slack_handshake_answers_the_challenge() -> None:
    slack = channel("slack")
    body = json.dumps({"type": "url_verification", "challenge": "3eZbrw1aBm", "token": "t"}).encode()
    answer = slack.handshake(hook(body), account("slack"))
    assert answer is not None
    assert (answer.status, answer.body, answer.content_type) == (200, "3eZbrw1aBm", "text/plain")


@pytest.mark.parametrize(
    "body",
    [
        b'{"type": "event_callback", "text": "url_verification"}',
        b"url_verification",
        b'{"type": "url_verification", "challenge": 5}',
        b'["url_verification"]',
        b'{"type": "url_verification", "a": ' + b"[" * 100_000,
        b"\xffurl_verification",
    ],
)
def test_c21_what_is_no_slack_handshake(body: bytes) -> None:
    assert channel("slack").handshake(hook(body), account("slack")) is None


@pytest.mark.parametrize("name", ["telegram", "mock"])
def test_the_others_have_no_handshake(name: str) -> None:
    assert channel(name).handshake(hook(b'{"type": "url_verification"}'), account(name)) is None
