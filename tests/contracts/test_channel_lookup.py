"""Slack's lookups: one call in the message's own channel, and a reason for whatever goes wrong."""

from collections.abc import Iterator
from typing import Any

import pytest

from shared.channels import channel
from shared.channels.http import HttpApi
from shared.errors import Transient
from shared.message import Lookup, Message, ReplyReference
from tests.contracts.channel_support import TOKENS, account, with_api
from tests.platforms.emulator import running
from tests.platforms.harness_server import refused_url
from tests.platforms.slack import Slack

ROOT, TS, CHANNEL = "1790000500.000550", "1790000555.000559", "C07HARBOR01"


@pytest.fixture
def slack() -> Iterator[Slack]:
    with running(Slack()) as platform:
        platform.messages[CHANNEL] = [
            {"user": "U07ANNA0001", "ts": ROOT, "thread_ts": ROOT, "text": "der Schlepper &amp; so"},
            {"user": "U07BRAM0002", "ts": TS, "thread_ts": ROOT, "text": "<@U07TIDEBOT> translate that"},
        ]
        yield platform


def current(**more: Any) -> Message:
    wanted = Lookup(via="platform", chat_id=CHANNEL, message_id=ROOT, thread_id=ROOT)
    return Message(
        **{
            "channel": "slack",
            "account": "acct",
            "message_id": TS,
            "keys": (f"{CHANNEL}:{TS}",),
            "chat_id": CHANNEL,
            "chat_type": "group",
            "thread_id": ROOT,
            "sender_id": "U07BRAM0002",
            "reply_to": ReplyReference(message_id=ROOT, author_id="U07ANNA0001", lookup=wanted),
            **more,
        }
    )


def looked_up(url: str, message: Message, wanted: Lookup | None = None) -> ReplyReference:
    def work(api: HttpApi) -> Any:
        assert message.reply_to is not None
        descriptor = wanted or message.reply_to.lookup
        assert descriptor is not None
        return channel("slack").lookup(descriptor, message, account("slack", url), api)

    return with_api("slack", work)


def verified(url: str, message: Message) -> bool:
    return with_api("slack", lambda api: channel("slack").verify_source(message, account("slack", url), api))


def test_q54_one_history_call_gives_the_roots_text(slack: Slack) -> None:
    found = looked_up(slack.url, current())
    assert found == ReplyReference(
        message_id=ROOT, author_id="U07ANNA0001", content="der Schlepper & so", source="lookup"
    )
    assert slack.requests == 1
    assert slack.refusals == []


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (401, {}, "permission-denied"),
        (403, {}, "permission-denied"),
        (404, {}, "not-found"),
        (410, {}, "deleted"),
        (429, {}, "not-delivered"),
        (500, {}, "not-delivered"),
        (302, {}, "not-delivered"),
        (200, b"<html>token", "not-delivered"),
        (200, [], "not-delivered"),
        (200, {"ok": True}, "not-delivered"),
        (200, {"ok": True, "messages": "x"}, "not-delivered"),
        (200, {"ok": True, "messages": [None, 5]}, "not-found"),
        (200, {"ok": True, "messages": []}, "not-found"),
        (200, {"ok": False}, "not-delivered"),
        (200, {"ok": False, "error": "missing_scope"}, "permission-denied"),
        (200, {"ok": False, "error": "not_in_channel"}, "permission-denied"),
        (200, {"ok": False, "error": "channel_not_found"}, "permission-denied"),
        (200, {"ok": False, "error": "token_revoked"}, "permission-denied"),
        (200, {"ok": False, "error": "message_not_found"}, "not-found"),
        (200, {"ok": False, "error": "ratelimited"}, "not-delivered"),
        (200, {"ok": False, "error": "internal_error"}, "not-delivered"),
        (200, {"ok": True, "messages": [{"ts": ROOT, "subtype": "tombstone", "text": "deleted."}]}, "deleted"),
        (200, {"ok": True, "messages": [{"ts": ROOT, "user": "U07ANNA0001"}]}, "unsupported"),
        (200, {"ok": True, "messages": [{"ts": ROOT, "subtype": "assistant_app_thread", "text": "x"}]}, "unsupported"),
    ],
)
def test_q55_q68_q69_q70_every_failure_is_a_reason(slack: Slack, status: int, body: Any, reason: str) -> None:
    slack.fail("conversations.history", "refuse", status=status, body=body)
    found = looked_up(slack.url, current())
    assert (found.message_id, found.content, found.unavailable_reason) == (ROOT, None, reason)
    assert found.lookup is None
    assert slack.requests == 1
    assert TOKENS["slack"] not in found.model_dump_json()
    assert slack.url not in found.model_dump_json()


def test_q70_connection_errors_are_not_delivered(slack: Slack) -> None:
    assert looked_up(refused_url(), current()).unavailable_reason == "not-delivered"
    slack.fail("conversations.history", "reset")
    assert looked_up(slack.url, current()).unavailable_reason == "not-delivered"
    assert slack.requests == 1


def test_z15_another_channel_is_never_asked(slack: Slack) -> None:
    wanted = Lookup(via="platform", chat_id="C07PRIVAT02", message_id=ROOT)
    assert looked_up(slack.url, current(), wanted).unavailable_reason == "not-found"
    assert slack.requests == 0


def test_p5_a_quote_inside_the_quote_is_left_out(slack: Slack) -> None:
    share = {"is_share": True, "text": "inner", "ts": "1.000001", "author_id": "U1"}
    slack.messages[CHANNEL][0]["attachments"] = [share]
    assert looked_up(slack.url, current()).content == "der Schlepper & so"
    slack.messages[CHANNEL][0]["text"] = ""
    assert looked_up(slack.url, current()).content is None


def test_source_in_a_thread_is_verified_among_the_replies(slack: Slack) -> None:
    assert verified(slack.url, current())
    assert slack.requests == 1


def test_source_at_top_level_is_verified_in_the_history(slack: Slack) -> None:
    top = current(message_id=ROOT, thread_id=None, sender_id="U07ANNA0001", reply_to=None)
    assert verified(slack.url, top)


@pytest.mark.parametrize(
    "other",
    [
        {"sender_id": "U07CLEO0003"},
        {"chat_id": "C07PRIVAT02"},
        {"thread_id": None},
        {"thread_id": "1790000400.000440"},
        {"message_id": "1790000556.000559"},
    ],
    ids=["sender", "chat", "no-root", "root", "message"],
)
def test_z16_a_source_that_differs_is_not_accepted(slack: Slack, other: dict[str, Any]) -> None:
    assert not verified(slack.url, current(**other))


def test_z16_a_deleted_source_is_not_accepted(slack: Slack) -> None:
    slack.messages[CHANNEL][1]["subtype"] = "tombstone"
    assert not verified(slack.url, current())


@pytest.mark.parametrize("error", ["missing_scope", "not_in_channel", "thread_not_found"])
def test_a_source_that_may_not_be_read_is_not_accepted(slack: Slack, error: str) -> None:
    slack.fail("conversations.replies", "refuse", status=200, body={"ok": False, "error": error})
    assert not verified(slack.url, current())


@pytest.mark.parametrize(
    ("status", "body"), [(429, {}), (503, {}), (200, b"x"), (200, {"ok": False, "error": "fatal_error"})]
)
def test_z17_a_source_that_could_not_be_asked_is_transient(slack: Slack, status: int, body: Any) -> None:
    slack.fail("conversations.replies", "refuse", status=status, body=body)
    with pytest.raises(Transient):
        verified(slack.url, current())
    assert verified(slack.url, current())


@pytest.mark.parametrize("name", ["telegram", "mock"])
def test_channels_without_a_lookup_ask_nobody(name: str) -> None:
    wanted = Lookup(via="platform", chat_id="1", message_id="2")
    message = current(channel=name)

    def work(api: HttpApi) -> Any:
        return channel(name).lookup(wanted, message, account(name, refused_url()), api)

    assert with_api(name, work).unavailable_reason == "not-delivered"
    assert with_api(name, lambda api: channel(name).verify_source(message, account(name, refused_url()), api))
