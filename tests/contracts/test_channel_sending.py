"""Sends against the emulated platforms: what arrives, how often, and what each outcome is called."""

from collections.abc import Iterator
from typing import Any

import pytest

from shared.channels import channel
from shared.channels.port import Delivery, Part, Switches, Target
from tests.contracts.channel_support import TARGETS, account, both, with_api
from tests.platforms.harness_server import refused_url, reply, serving
from tests.platforms.slack import Slack
from tests.platforms.telegram import Telegram

METHODS = {"telegram": "sendMessage", "slack": "chat.postMessage"}
REAL = ["telegram", "slack"]


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


def send(
    name: str, url: str, text: str = "hello", target: Target | None = None, switches: Switches | None = None
) -> Delivery:
    part, where = Part("text", text=text), target or TARGETS[name]
    return with_api(
        name,
        lambda api: channel(name).send(where, part, "nonce-1", account(name, url), api, switches or Switches()),
    )


def test_telegram_message_as_it_arrives(telegram: Telegram) -> None:
    sent = send("telegram", telegram.url, "🛟 **潮** & `x`\n[t](https://example.invalid/)")
    assert sent == Delivery("sent", ids=("9001",), reason="sent")
    assert telegram.refusals == []
    [body] = telegram.sent("sendMessage")
    assert body == {
        "chat_id": -1002000000123,
        "text": "🛟 潮 & x\nt",
        "entities": [
            {"type": "bold", "offset": 3, "length": 1},
            {"type": "code", "offset": 7, "length": 1},
            {"type": "text_link", "offset": 9, "length": 1, "url": "https://example.invalid/"},
        ],
        "reply_parameters": {"message_id": 2001, "allow_sending_without_reply": True},
    }


@pytest.mark.parametrize(
    ("target", "thread"),
    [
        (Target("-100", "group", "31", "5"), 31),
        (Target("-100", "group", None, "5"), None),
        (Target("-100", "group", "2200", "5", {"thread": "comments"}), None),
        (Target("5", "private", "5", None), 5),
    ],
    ids=["topic", "no-topic", "comments", "private-topic"],
)
def test_z24_telegram_thread_is_named_only_where_it_is_a_topic(
    telegram: Telegram, target: Target, thread: int | None
) -> None:
    send("telegram", telegram.url, target=target)
    [body] = telegram.sent("sendMessage")
    assert body.get("message_thread_id") == thread
    assert ("reply_parameters" in body) is (target.reply_to is not None)


def test_telegram_styles_that_are_refused_are_left_out_and_only_then_sent_again(telegram: Telegram) -> None:
    body = {"ok": False, "error_code": 400, "description": "Bad Request: can't parse entities: nested"}
    telegram.fail("sendMessage", "refuse", status=400, body=body)
    assert send("telegram", telegram.url, "**x** y").state == "sent"
    [taken] = telegram.sent("sendMessage")
    assert taken["text"] == "**x** y"
    assert "entities" not in taken
    assert telegram.requests == 2


def test_telegram_other_refusals_are_not_tried_again(telegram: Telegram) -> None:
    body = {"ok": False, "error_code": 400, "description": "Bad Request: chat not found"}
    telegram.fail("sendMessage", "refuse", status=400, body=body)
    assert send("telegram", telegram.url, "**x**") == Delivery("not-sent", reason="delivery-refused")
    assert telegram.requests == 1


def test_telegram_waits_as_long_as_the_body_says(telegram: Telegram) -> None:
    body = {"ok": False, "error_code": 429, "description": "Too Many Requests", "parameters": {"retry_after": 7}}
    telegram.fail("sendMessage", "refuse", status=429, body=body)
    expected = Delivery("not-sent", reason="rate-limited", retry=True, retry_after_s=7.0)
    assert send("telegram", telegram.url) == expected


def test_slack_message_as_it_arrives(slack: Slack) -> None:
    sent = send("slack", slack.url, "**潮** <!channel> & @here")
    assert sent == Delivery("sent", ids=("1790100000.000001",), reason="sent")
    assert slack.refusals == []
    [body] = slack.sent("chat.postMessage")
    assert body == {
        "channel": "C07HARBOR01",
        "text": "*潮* &lt;!channel&gt; &amp; @here",
        "thread_ts": "1790000202.000229",
        "mrkdwn": True,
        "parse": "none",
        "link_names": False,
        "unfurl_links": False,
        "unfurl_media": False,
    }


@pytest.mark.parametrize(
    ("target", "thread"),
    [
        (Target("C07HARBOR01", "group", "1790000500.000550", "1790000555.000559"), "1790000500.000550"),
        (Target("C07HARBOR01", "group", None, "1790000555.000559"), "1790000555.000559"),
        (Target("C07HARBOR01", "group", None, None), None),
        (Target("D07ANNADM01", "private", None, "1790000555.000559"), None),
        (Target("D07ANNADM01", "private", "1790000500.000550", "1790000555.000559"), "1790000500.000550"),
    ],
    ids=["thread", "channel", "proactive", "direct", "direct-thread"],
)
def test_p16_z24_slack_answers_hang_on_the_asker(slack: Slack, target: Target, thread: str | None) -> None:
    send("slack", slack.url, target=target)
    [body] = slack.sent("chat.postMessage")
    assert body.get("thread_ts") == thread


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("channel_not_found", Delivery("not-sent", reason="delivery-refused")),
        ("ratelimited", Delivery("not-sent", reason="rate-limited", retry=True, retry_after_s=3.0)),
        ("fatal_error", Delivery("unknown", reason="delivery-unknown")),
        ("internal_error", Delivery("unknown", reason="delivery-unknown")),
    ],
)
def test_r46_r47_slack_says_no_with_status_200(slack: Slack, error: str, expected: Delivery) -> None:
    slack.fail(
        "chat.postMessage", "refuse", status=200, body={"ok": False, "error": error}, headers={"Retry-After": "3"}
    )
    assert send("slack", slack.url) == expected


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, Delivery("not-sent", reason="delivery-refused")),
        (401, Delivery("not-sent", reason="delivery-refused")),
        (403, Delivery("not-sent", reason="delivery-refused")),
        (429, Delivery("not-sent", reason="rate-limited", retry=True, retry_after_s=3.0)),
        (500, Delivery("unknown", reason="delivery-unknown")),
        (503, Delivery("unknown", reason="delivery-unknown")),
    ],
)
def test_r47_statuses(platforms: dict[str, Telegram | Slack], name: str, status: int, expected: Delivery) -> None:
    platforms[name].fail(METHODS[name], "refuse", status=status, body={}, headers={"Retry-After": "3"})
    assert send(name, platforms[name].url) == expected
    assert platforms[name].requests == 1


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("body", [b"", b"<html>", [], {}, {"ok": True}, {"ok": True, "result": {}, "ts": 1.5}])
def test_r47_an_invalid_body_is_unknown(platforms: dict[str, Telegram | Slack], name: str, body: Any) -> None:
    platforms[name].fail(METHODS[name], "broken", status=200, body=body)
    assert send(name, platforms[name].url) == Delivery("unknown", reason="delivery-unknown")
    assert len(platforms[name].sent(METHODS[name])) == 1


@pytest.mark.parametrize("name", REAL)
def test_r45_p11_a_broken_connection_is_unknown_and_sent_once(
    platforms: dict[str, Telegram | Slack], name: str
) -> None:
    platforms[name].fail(METHODS[name], "reset")
    assert send(name, platforms[name].url) == Delivery("unknown", reason="delivery-unknown")
    assert platforms[name].requests == 1
    assert len(platforms[name].sent(METHODS[name])) == 1


@pytest.mark.parametrize("name", [*REAL, "mock"])
def test_not_connected_is_not_sent_and_may_be_tried_again(name: str) -> None:
    assert send(name, refused_url()) == Delivery("not-sent", reason="not-connected", retry=True)


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize(
    ("switches", "reason"),
    [(Switches(read_only=True, safe_mode=True), "read-only-mode"), (Switches(safe_mode=True), "safe-mode")],
)
def test_r7_switches_refuse_before_the_network(
    platforms: dict[str, Telegram | Slack], name: str, switches: Switches, reason: str
) -> None:
    assert send(name, platforms[name].url, switches=switches) == Delivery("not-sent", reason=reason)
    who = account(name, platforms[name].url, ack="reaction")
    with_api(name, lambda api: channel(name).acknowledge(TARGETS[name], "working", who, api, switches))
    assert platforms[name].requests == 0


def test_r5_mock_is_exempt_and_posts_to_its_callback() -> None:
    with serving(reply(200, {"id": "m-1"}), reply(204), reply(404)) as server:
        sent = send("mock", server.url, "hi", switches=Switches(read_only=True, safe_mode=True))
        assert sent == Delivery("sent", ids=("m-1",), reason="sent")
        assert send("mock", server.url) == Delivery("sent", ids=("mock-nonce-1",), reason="sent")
        assert send("mock", server.url) == Delivery("not-sent", reason="delivery-refused")
    assert server.requests[0].json() == {
        "type": "message",
        "account": "acct",
        "chat": "team",
        "thread": None,
        "reply_to": "1",
        "text": "hi",
        "nonce": "nonce-1",
    }


def test_mock_without_a_callback_is_sent() -> None:
    assert send("mock", "") == Delivery("sent", ids=("mock-nonce-1",), reason="sent")
