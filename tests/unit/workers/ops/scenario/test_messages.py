"""A `say` becomes the normalised message that a channel would have made."""

from typing import Any

import pytest

from shared.message import Lookup, ReplyReference
from shared.settings import AccountSettings
from workers.ops.scenario.messages import message_of, normalised_of
from workers.ops.scenario.model import SaidQuote, Say

NOW = 1_790_000_000_123


def account(channel: str, **more: Any) -> AccountSettings:
    return AccountSettings.model_validate({"id": "a", "channel": channel, "self_id": "8001", **more})


def said(chat: str = "-100", sender: str = "3", **more: Any) -> Say:
    return Say("a", chat, sender, **more)


def test_a_chat_is_a_group_unless_it_equals_the_sender_or_says_otherwise() -> None:
    bot = account("telegram")
    assert message_of(said(), bot, 1, NOW).chat_type == "group"
    assert message_of(said("3", "3"), bot, 1, NOW).chat_type == "private"
    assert message_of(said("dm-3", chat_type="private"), bot, 1, NOW).chat_type == "private"
    assert message_of(said("3", "3", chat_type="group"), bot, 1, NOW).chat_type == "group"


def test_a_mention_addresses_the_bot_in_a_group_only() -> None:
    bot = account("slack")
    assert message_of(said(mentions_bot=True), bot, 1, NOW).addressed
    assert message_of(said(mentions=("8001",)), bot, 1, NOW).mentions_bot is True
    other = message_of(said(mentions=("3333",)), bot, 1, NOW)
    assert (other.mentions_bot, other.addressed, other.mentions) == (False, False, ("3333",))
    private = message_of(said("3", "3", mentions_bot=True), bot, 1, NOW)
    assert (private.mentions_bot, private.addressed) == (None, False)


@pytest.mark.parametrize(("channel", "addressed"), [("telegram", True), ("whatsapp", True), ("slack", False)])
def test_q37_q38_a_reply_to_the_bot_addresses_it_where_the_platform_counts_it(channel: str, addressed: bool) -> None:
    quote = SaidQuote({"message_id": "5", "author_id": "8001", "content": "x"})
    assert message_of(said(reply_to=quote), account(channel), 1, NOW).addressed is addressed


def test_g18_an_account_without_an_id_does_not_know_itself() -> None:
    assert not message_of(said(mentions=("8001",)), account("telegram", self_id=""), 1, NOW).self_known
    assert message_of(said(), account("telegram"), 1, NOW).self_known


def test_ids_are_invented_in_the_platforms_own_shape() -> None:
    assert message_of(said(), account("telegram"), 7, NOW).message_id == "700007"
    assert message_of(said(), account("slack"), 7, NOW).message_id == "1790000000.000007"
    named = message_of(said(message_id="77"), account("telegram"), 7, NOW)
    assert (named.message_id, named.keys) == ("77", ("-100:77",))


def test_a_quote_is_cleaned_like_a_real_one() -> None:
    quote = SaidQuote({"content": "a\u0000\r\nb", "attachments": [{"kind": "hologram", "name": "../旧图.png"}]})
    reference = message_of(said(reply_to=quote), account("telegram"), 1, NOW).reply_to
    assert reference is not None
    assert reference.content == "a\nb"
    assert [(a.kind, a.name) for a in reference.attachments] == [("other", "旧图.png")]
    assert (reference.explicit_text, reference.needs_lookup) == (True, False)


def test_without_content_the_channels_own_evidence_is_asked() -> None:
    quote = SaidQuote({"message_id": "5"}, sent_at_ms=9, keys=("k",))
    assert quoted("slack", quote) == Lookup(via="platform", chat_id="-100", message_id="5", keys=("5", "k"))
    assert quoted("telegram", quote) == Lookup(via="history", chat_id="-100", message_id="5", quoted_at_ms=9)
    assert quoted("weixin", quote) == Lookup(
        via="index", chat_id="-100", message_id="5", keys=("5", "k"), quoted_at_ms=9
    )
    assert quoted("mock", quote) is None
    assert quoted("telegram", SaidQuote({"message_id": "5"})) is None
    assert quoted("slack", SaidQuote({"message_id": "5", "content": "x"})) is None
    assert quoted("slack", SaidQuote({"message_id": "5", "unavailable_reason": "deleted"})) is None


def quoted(channel: str, quote: SaidQuote) -> Lookup | None:
    reference = message_of(said(reply_to=quote), account(channel), 1, NOW).reply_to
    assert isinstance(reference, ReplyReference)
    return reference.lookup


def test_a_message_is_shown_under_the_fixtures_names() -> None:
    quote = SaidQuote({"message_id": "5"})
    shown = normalised_of(message_of(said(text="hi", thread="31", reply_to=quote), account("slack"), 1, NOW))
    assert shown["text"] == "hi"
    assert shown["thread_id"] == shown["session_thread"] == "31"
    assert shown["dedupe_keys"] == ["-100:1790000000.000001"]
    assert shown["attachments"] == []
    assert shown["reply_to"]["needs_lookup"] is True
    assert shown["reply_to"]["lookup_via"] == "platform"
    assert shown["reply_to"]["unavailable_reason"] is None
    assert normalised_of(message_of(said(), account("slack"), 1, NOW))["reply_to"] is None
