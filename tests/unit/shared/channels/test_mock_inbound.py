"""The mock channel's own form, and the list of channels."""

from typing import Any

import pytest

from shared.channels import BUILT, NotBuilt, channel
from shared.errors import Malformed
from shared.message import Message
from shared.settings import AccountSettings


def normalised(event: Any, **more: Any) -> list[Message]:
    return channel("mock").normalise(event, AccountSettings.model_validate({"id": "mk", "channel": "mock"} | more))


def test_the_least_that_an_event_needs() -> None:
    [found] = normalised({"message_id": "1", "sender": "anna", "text": " hello "})
    assert (found.chat_id, found.chat_type, found.text, found.text_raw) == ("anna", "private", "hello", " hello ")
    assert (found.keys, found.mentions_bot, found.addressed) == (("anna:1",), None, False)


def test_a_group_message_with_everything() -> None:
    event = {
        "message_id": "2", "sender": "anna", "name": "Anna", "chat": "team", "text": "@bot hi", "thread": "t",
        "mentions_bot": True, "mentions": ["bot"], "mentions_all": True, "sent_at_ms": 5,
        "reply_to": {"message_id": "1", "author_id": "bob", "content": "/new", "attachments": [{"kind": "image"}]},
        "attachments": [{"kind": "file", "name": "a", "data": "eA=="}],
    }  # fmt: skip
    [found] = normalised([event])
    assert (found.chat_type, found.thread_id, found.addressed, found.mentions_all) == ("group", "t", True, True)
    assert found.reply_to is not None
    assert (found.reply_to.content, found.reply_to.explicit_text, found.reply_to.source) == ("/new", True, "payload")
    assert found.attachments[0].ref == {"data": "eA=="}


def test_a_quote_without_content_has_a_reason() -> None:
    for given, reason in ((None, "not-delivered"), ("deleted", "deleted")):
        [found] = normalised(
            {"message_id": "1", "sender": "a", "reply_to": {"message_id": "0", "unavailable_reason": given}}
        )
        assert found.reply_to is not None
        assert (found.reply_to.unavailable_reason, found.reply_to.needs_lookup) == (reason, False)


def test_the_bots_own_messages_are_ignored() -> None:
    [found] = normalised({"message_id": "1", "sender": "bot"}, self_id="bot")
    assert (found.action, found.ignore_reason) == ("ignore", "self")


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"message_id": "", "sender": "a"},
        {"message_id": 5, "sender": "a"},
        {"message_id": "1", "sender": "a", "secret": "value"},
        {"message_id": "1", "sender": "a", "reply_to": {"url": "https://example.invalid/"}},
        {"message_id": "1", "sender": "a", "sent_at_ms": 2**64},
        [{"message_id": "1", "sender": "a"}, 5],
        [{"message_id": "1", "sender": "a"}] * 1001,
    ],
)
def test_c21_anything_else_is_malformed_without_its_values(event: Any) -> None:
    with pytest.raises(Malformed) as caught:
        normalised(event)
    assert "value" not in str(caught.value)
    assert "example" not in str(caught.value)


def test_channels_by_name() -> None:
    assert {name: channel(name).name for name in BUILT} == {name: name for name in BUILT}
    with pytest.raises(NotBuilt, match="the channel qq is not built yet: built are dingtalk, discord, "):
        channel("qq")
    with pytest.raises(NotBuilt, match="there is no such channel"):
        channel("pigeon")
