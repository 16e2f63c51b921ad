"""Slack's odd shapes that no golden event shows."""

from typing import Any

import pytest

from shared.channels import channel
from shared.errors import Malformed
from shared.message import Message
from shared.settings import AccountSettings

TS, ROOT = "1790000555.000559", "1790000500.000550"


def account(**more: Any) -> AccountSettings:
    return AccountSettings.model_validate({"id": "sl", "channel": "slack"} | more)


def callback(**event: Any) -> dict[str, Any]:
    base = {
        "type": "message", "user": "U07BRAM0002", "ts": TS, "channel": "C07HARBOR01", "channel_type": "channel",
        "text": "hi",
    }  # fmt: skip
    return {
        "type": "event_callback",
        "api_app_id": "A07TIDEAPP",
        "event_id": "Ev1",
        "event": {key: value for key, value in (base | event).items() if value is not None},
        "authorizations": [{"user_id": "U07TIDEBOT", "is_bot": True}],
    }


def normalised(who: AccountSettings | None = None, **event: Any) -> Message:
    [found] = channel("slack").normalise(callback(**event), who or account())
    return found


def test_c8_an_assistants_thread_is_no_quote() -> None:
    found = normalised(
        channel="D07ANNADM01", channel_type="im", thread_ts=ROOT, parent_user_id="U07TIDEBOT", assistant_thread={}
    )
    assert (found.reply_to, found.thread_id, found.action) == (None, ROOT, "process")


def test_q53_the_root_of_a_thread_quotes_nothing() -> None:
    found = normalised(thread_ts=TS)
    assert (found.reply_to, found.thread_id) == (None, None)


def test_c9_an_unfurl_is_no_edit() -> None:
    own = {"user": "U07TIDEBOT", "bot_id": "B1", "ts": TS, "text": "see", "attachments": [{"text": "preview"}]}
    found = normalised(subtype="message_changed", user=None, text=None, message=own, previous_message=own)
    assert (found.action, found.ignore_reason) == ("ignore", "self")
    persons = {"user": "U07ANNA0001", "ts": TS, "text": "see", "edited": {"ts": "1.1", "user": "U07ANNA0001"}}
    found = normalised(subtype="message_changed", user=None, text=None, message=persons, previous_message=persons)
    assert (found.action, found.ignore_reason, found.message_id) == ("ignore", "unfurl", TS)


def test_a_deleted_root_is_a_notice() -> None:
    grave = {"user": "USLACKBOT", "ts": TS, "subtype": "tombstone", "text": "This message was deleted."}
    found = normalised(subtype="message_changed", user=None, text=None, message=grave)
    assert (found.action, found.ignore_reason) == ("ignore", "delete-notice")


@pytest.mark.parametrize(
    "event",
    [
        {"user": "U07TIDEBOT"},
        {"user": "U9", "app_id": "A07TIDEAPP"},
        {"user": None, "subtype": "bot_message", "bot_id": "B9", "bot_profile": {"app_id": "A07TIDEAPP"}},
    ],
    ids=["user", "app", "profile"],
)
def test_the_bots_own_messages_are_ignored(event: dict[str, Any]) -> None:
    found = normalised(**event)
    assert (found.action, found.ignore_reason) == ("ignore", "self")


def test_another_apps_message_is_a_bots() -> None:
    found = normalised(user=None, subtype="bot_message", bot_id="B9", username="ferry")
    assert (found.action, found.sender_id, found.sender_name, found.sender_is_bot) == ("process", "B9", "ferry", True)


@pytest.mark.parametrize("subtype", ["channel_join", "message_replied", "assistant_app_thread", "new_thing", 5])
def test_a_notice_is_ignored(subtype: Any) -> None:
    found = normalised(subtype=subtype)
    assert (found.action, found.ignore_reason, found.system) == ("ignore", "notice", True)


def test_mentions_are_read_before_entities_are_decoded() -> None:
    found = normalised(text="&lt;@U07TIDEBOT&gt; &amp;lt; <@U07TIDEBOT|tide> ok <@W1>")
    assert found.text == "<@U07TIDEBOT> &lt;  ok <@W1>"
    assert (found.mentions, found.mentions_bot, found.addressed) == (("U07TIDEBOT", "W1"), True, True)


def test_q37_a_thread_reply_to_the_bot_does_not_address_it() -> None:
    found = normalised(thread_ts=ROOT, parent_user_id="U07TIDEBOT")
    assert (found.addressed, found.mentions_bot) == (False, False)


def test_without_an_own_id_nobody_can_tell() -> None:
    event = callback(text="<@U1> hi")
    del event["authorizations"]
    [found] = channel("slack").normalise(event, account())
    assert (found.self_known, found.mentions_bot, found.mentions) == (False, None, ("U1",))
    event["event"]["type"] = "app_mention"
    [found] = channel("slack").normalise(event, account())
    assert found.mentions_bot is True


def test_an_inline_root_that_was_deleted_shows_no_filler() -> None:
    root = {"ts": ROOT, "subtype": "tombstone", "user": "USLACKBOT", "text": "This message was deleted."}
    found = normalised(subtype="thread_broadcast", thread_ts=ROOT, root=root)
    assert found.reply_to is not None
    assert (found.reply_to.unavailable_reason, found.reply_to.content) == ("deleted", None)
    assert found.reply_to.author_id is None


def test_slackbot_is_nobodys_quote_author() -> None:
    found = normalised(thread_ts=ROOT, parent_user_id="USLACKBOT")
    assert found.reply_to is not None
    assert found.reply_to.author_id is None
    assert found.reply_to.needs_lookup


def test_a_share_with_own_words_and_in_a_thread_is_still_the_quote() -> None:
    share = {"is_share": True, "ts": "1.000001", "channel_id": "C2", "author_id": "U2", "text": "prices &amp; more"}
    found = normalised(text="look", thread_ts=ROOT, attachments=[{"text": "unrelated"}, share])
    assert found.reply_to is not None
    assert (found.reply_to.content, found.reply_to.reference_kind) == ("prices & more", "forward")
    assert (found.reply_to.explicit_text, found.reply_to.source, found.text) == (True, "payload", "look")


def test_z_text_claimed_for_a_root_is_discarded_but_its_ids_stay() -> None:
    wrong = {"ts": "1790000400.000440", "text": "claimed", "user": "U9"}
    found = normalised(thread_ts=ROOT, parent_user_id="U07ANNA0001", root=wrong)
    assert found.reply_to is not None
    assert (found.reply_to.content, found.reply_to.author_id) == (None, "U07ANNA0001")
    assert found.reply_to.needs_lookup


def test_files_with_address_and_transcript() -> None:
    clip = {
        "name": "clip.m4a", "mimetype": "audio/mp4", "size": 9, "url_private": "https://files.slack.com/a",
        "transcription": {"status": "complete", "preview": {"content": "berth seven", "has_more": False}},
    }  # fmt: skip
    [file] = normalised(subtype="file_share", text="", files=[clip]).attachments
    assert (file.kind, file.name, file.transcript) == ("audio", "clip.m4a", "berth seven")
    assert file.ref == {"url": "https://files.slack.com/a"}


@pytest.mark.parametrize(
    "event",
    [
        {"type": "app_rate_limited"},
        {"type": "url_verification", "challenge": "x"},
        {"type": "event_callback", "event": {"type": "reaction_added"}},
        {"type": "hello", "connection_info": {}},
        {"envelope_id": "1", "type": "slash_commands", "payload": {"command": "/x"}},
    ],
)
def test_what_is_no_message_gives_none(event: dict[str, Any]) -> None:
    assert channel("slack").normalise(event, account()) == []


@pytest.mark.parametrize("gone", ["ts", "channel"])
def test_c21_a_message_without_ids_is_malformed(gone: str) -> None:
    with pytest.raises(Malformed):
        normalised(**{gone: None})


def test_time_and_target() -> None:
    found = normalised(thread_ts=ROOT)
    assert found.sent_at_ms == 1_790_000_555_000
    target = channel("slack").target(found)
    assert (target.chat_id, target.thread_id, target.reply_to) == ("C07HARBOR01", ROOT, TS)
