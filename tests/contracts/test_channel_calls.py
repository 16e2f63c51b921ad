"""Calls without a message: signs that a turn runs, who the bot is, files of the current message."""

from collections.abc import Iterator
from typing import Any

import pytest

from shared.channels import channel
from shared.channels.port import Switches
from shared.errors import EffectUnknown, MillstreamError, Refused, Transient
from shared.message import Attachment
from tests.contracts.channel_support import TARGETS, TOKENS, account, both, with_api
from tests.platforms.slack import Slack
from tests.platforms.telegram import Telegram


@pytest.fixture
def platforms() -> Iterator[dict[str, Any]]:
    with both() as found:
        yield found


@pytest.fixture
def telegram(platforms: dict[str, Any]) -> Telegram:
    return platforms["telegram"]


@pytest.fixture
def slack(platforms: dict[str, Any]) -> Slack:
    return platforms["slack"]


@pytest.mark.parametrize(
    ("name", "ack", "state", "taken"),
    [
        ("telegram", "typing", "working", ("sendChatAction", {"chat_id": -1002000000123, "action": "typing"})),
        ("telegram", "typing", "done", None),
        ("telegram", "none", "working", None),
        (
            "telegram", "reaction", "working",
            ("setMessageReaction",
             {"chat_id": -1002000000123, "message_id": 2001, "reaction": [{"type": "emoji", "emoji": "👀"}]}),
        ),
        (
            "telegram", "reaction", "done",
            ("setMessageReaction", {"chat_id": -1002000000123, "message_id": 2001, "reaction": []}),
        ),
        (
            "slack", "typing", "working",
            ("reactions.add", {"channel": "C07HARBOR01", "timestamp": "1790000202.000229", "name": "eyes"}),
        ),
        (
            "slack", "reaction", "done",
            ("reactions.remove", {"channel": "C07HARBOR01", "timestamp": "1790000202.000229", "name": "eyes"}),
        ),
        ("slack", "none", "working", None),
    ],
)  # fmt: skip
def test_acknowledgement(
    platforms: dict[str, Telegram | Slack], name: str, ack: str, state: Any, taken: tuple[str, Any] | None
) -> None:
    who = account(name, platforms[name].url, ack=ack)
    with_api(name, lambda api: channel(name).acknowledge(TARGETS[name], state, who, api, Switches()))
    seen = [(each["method"], each["body"]) for each in platforms[name].seen]
    assert seen == ([taken] if taken else [])
    assert platforms[name].refusals == []


@pytest.mark.parametrize(
    ("name", "ids", "called"),
    [("telegram", ("7100000042",), "tidewatch_bot"), ("slack", ("U07TIDEBOT", "B07TIDEBOT"), "tidebot")],
)
def test_identity(platforms: dict[str, Telegram | Slack], name: str, ids: tuple[str, ...], called: str) -> None:
    who = account(name, platforms[name].url)
    found = with_api(name, lambda api: channel(name).identity(who, api))
    assert (found.self_ids, found.name) == (ids, called)


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [(401, {"ok": False}, Refused), (200, {"ok": False, "error": "invalid_auth"}, Refused), (429, {}, Transient),
     (502, {}, Transient), (200, b"<html>", Transient), (200, {"ok": True}, Refused)],
)  # fmt: skip
@pytest.mark.parametrize(("name", "method"), [("telegram", "getMe"), ("slack", "auth.test")])
def test_identity_refused(
    platforms: dict[str, Telegram | Slack],
    name: str,
    method: str,
    status: int,
    body: Any,
    error: type[MillstreamError],
) -> None:
    platforms[name].fail(method, "refuse", status=status, body=body)
    who = account(name, platforms[name].url)
    with pytest.raises(error) as caught:
        with_api(name, lambda api: channel(name).identity(who, api))
    assert TOKENS[name] not in str(caught.value)


def fetched(name: str, url: str, attachment: Attachment, most: int = 100) -> bytes:
    who = account(name, url)
    return with_api(name, lambda api: channel(name).fetch(attachment, who, api, most))


def test_telegram_fetches_a_file(telegram: Telegram) -> None:
    telegram.files["photos/file 1.jpg"] = b"x" * 100
    photo = Attachment(kind="image", ref={"file_id": "photos/file 1.jpg"})
    assert fetched("telegram", telegram.url, photo) == b"x" * 100
    with pytest.raises(Refused):
        fetched("telegram", telegram.url, photo, 99)
    with pytest.raises(Refused):
        fetched("telegram", telegram.url, Attachment(kind="image", ref={"file_id": "gone"}))
    with pytest.raises(Refused):
        fetched("telegram", telegram.url, Attachment(kind="image"))
    telegram.files["../../etc/passwd"] = b"x"
    with pytest.raises(Refused):
        fetched("telegram", telegram.url, Attachment(kind="file", ref={"file_id": "../../etc/passwd"}))


def test_slack_fetches_from_its_own_hosts_only(slack: Slack) -> None:
    slack.files["/files-pri/T-F/a.png"] = b"x" * 100
    image = Attachment(kind="image", media_type="image/png", ref={"url": f"{slack.url}/files-pri/T-F/a.png"})
    assert fetched("slack", slack.url, image) == b"x" * 100
    with pytest.raises(EffectUnknown):
        fetched("slack", slack.url, image, 99)
    before = slack.requests
    with pytest.raises(Refused):
        fetched("slack", slack.url, image.model_copy(update={"size": 101}))
    elsewhere = (
        "", "https://files.slack.com.example.invalid/x", "http://files.slack.com/x", "file:///etc/passwd",
                "https://files.slack.com:bad/x", "https://files.slack.com@example.invalid/", "//x", "http://[x",
    )  # fmt: skip
    for url in elsewhere:
        with pytest.raises(Refused):
            fetched("slack", slack.url, Attachment(kind="file", ref={"url": url}))
    assert slack.requests == before


def test_slack_takes_no_sign_in_page_for_a_file(slack: Slack) -> None:
    slack.fail("a.png", "refuse", status=200, body=b"<html>", headers={"Content-Type": "text/html; charset=utf-8"})
    image = Attachment(kind="image", media_type="image/png", ref={"url": f"{slack.url}/a.png"})
    with pytest.raises(Refused):
        fetched("slack", slack.url, image)
    slack.fail("a.png", "refuse", status=302, body={}, headers={"Location": "https://example.invalid/"})
    with pytest.raises(Refused):
        fetched("slack", slack.url, image)


def test_mock_files_come_with_the_event() -> None:
    assert fetched("mock", "", Attachment(kind="file", ref={"data": "aGk="})) == b"hi"
    for data in ("", "a", "é", "aGk=" * 50):
        with pytest.raises(Refused):
            fetched("mock", "", Attachment(kind="file", ref={"data": data}))
