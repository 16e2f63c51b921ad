"""Telegram's odd shapes that no golden event shows."""

from typing import Any

import pytest

from shared.channels import channel
from shared.errors import Malformed
from shared.message import Message
from shared.settings import AccountSettings

BOT = {"id": 7100000042, "is_bot": True, "first_name": "Tidewatch", "username": "tidewatch_bot"}
ORIN = {"id": 510000222, "is_bot": False, "first_name": "Orin"}
GROUP = {"id": -1002000000123, "title": "Harbor crew", "type": "supergroup"}


def account(**more: Any) -> AccountSettings:
    known = {"id": "tg", "channel": "telegram", "self_id": "7100000042", "self_name": "tidewatch_bot"}
    return AccountSettings.model_validate(known | more)


def update(kind: str = "message", **message: Any) -> dict[str, Any]:
    base = {"message_id": 10, "from": ORIN, "chat": GROUP, "date": 1790000000}
    return {"update_id": 5, kind: {key: value for key, value in (base | message).items() if value is not None}}


def normalised(who: AccountSettings | None = None, kind: str = "message", **message: Any) -> Message:
    [found] = channel("telegram").normalise(update(kind, **message), who or account())
    return found


def reply(**message: Any) -> dict[str, Any]:
    return {"message_id": 9, "from": BOT, "chat": GROUP, "date": 1789999000} | message


def test_q38_a_reply_to_the_bot_addresses_it_without_a_mention() -> None:
    found = normalised(text="and then?", reply_to_message=reply(text="high water"))
    assert found.addressed
    assert found.mentions_bot is False
    other = normalised(text="and then?", reply_to_message=reply(text="high water", **{"from": ORIN}))
    assert not other.addressed


def test_c2_a_message_in_the_bots_own_topic_is_neither_quote_nor_address() -> None:
    root = reply(message_id=47, forum_topic_created={"name": "x"}, message_thread_id=47, is_topic_message=True)
    found = normalised(text="tea?", message_thread_id=47, is_topic_message=True, reply_to_message=root)
    assert (found.reply_to, found.addressed, found.thread_id) == (None, False, "47")
    inaccessible = {"message_id": 47, "chat": GROUP, "date": 0}
    found = normalised(text="tea?", message_thread_id=47, is_topic_message=True, reply_to_message=inaccessible)
    assert (found.reply_to, found.addressed) == (None, False)


def test_a_reply_to_the_first_message_of_a_chain_is_a_quote() -> None:
    first = reply(message_id=2100, text="fuel barge is late", **{"from": ORIN})
    found = normalised(text="how late?", message_thread_id=2100, reply_to_message=first)
    assert found.reply_to is not None
    assert found.reply_to.content == "fuel barge is late"
    assert found.thread_id is None


def test_c4_an_anonymous_admin_is_no_bot() -> None:
    ghost = {"id": 1087968824, "is_bot": True, "first_name": "Group", "username": "GroupAnonymousBot"}
    found = normalised(text="/help", sender_chat=GROUP, **{"from": ghost})
    assert (found.action, found.sender_is_bot) == ("process", False)
    assert (found.sender_id, found.sender_name) == ("-1002000000123", "Harbor crew")


def test_another_bot_is_marked() -> None:
    found = normalised(text="hi", **{"from": {"id": 9, "is_bot": True, "first_name": "Other"}})
    assert found.sender_is_bot


def test_c5_mentions_after_emoji_are_cut_exactly() -> None:
    text = "👨‍👩‍👧 @tidewatch_bot 🛟 @Tidewatch_Bot x"
    at = [len(text[:i].encode("utf-16-le")) // 2 for i in range(len(text)) if text[i] == "@"]
    entities = [{"type": "mention", "offset": offset, "length": 14} for offset in at]
    found = normalised(text=text, entities=entities)
    assert found.text == "👨‍👩‍👧  🛟  x"
    assert found.mentions_bot is True
    assert found.mentions == ("@tidewatch_bot",)


def test_a_text_mention_of_the_bot_and_captions_count() -> None:
    entity = {"type": "text_mention", "offset": 0, "length": 9, "user": BOT}
    found = normalised(caption="Tidewatch, what is this?", caption_entities=[entity], photo=[{"file_id": "A"}])
    assert (found.mentions_bot, found.text) == (True, ", what is this?")
    assert [(each.kind, each.ref) for each in found.attachments] == [("image", {"file_id": "A"})]


def test_somebody_elses_command_is_no_address() -> None:
    found = normalised(text="/new@other_bot", entities=[{"type": "bot_command", "offset": 0, "length": 14}])
    assert (found.mentions_bot, found.addressed, found.text) == (False, False, "/new@other_bot")


def test_a_name_cannot_be_judged_while_the_bots_own_is_not_known() -> None:
    mention = [{"type": "mention", "offset": 0, "length": 5}]
    found = normalised(account(self_name=""), text="@mila hi", entities=mention)
    assert (found.self_known, found.mentions_bot, found.mentions) == (False, None, ("@mila",))
    found = normalised(account(self_name=""), text="hi")
    assert (found.self_known, found.mentions_bot) == (True, False)
    found = normalised(account(self_name="", self_id=""), text="hi")
    assert (found.self_known, found.mentions_bot) == (False, None)


def test_the_token_tells_the_bots_id() -> None:
    who = account(self_id="", credentials={"token": "7100000042:invented"})
    found = normalised(who, text="and?", reply_to_message=reply(text="x"))
    assert found.addressed
    assert found.self_known


def test_q46_q47_manual_quote_and_reply_text() -> None:
    both = normalised(
        text="?", reply_to_message=reply(text="all of it"), quote={"text": "of", "is_manual": True, "position": 4}
    )
    assert both.reply_to is not None
    assert (both.reply_to.content, both.reply_to.selected) == ("all of it", "of")
    only = normalised(text="?", reply_to_message=reply(), quote={"text": "片段", "position": 0})
    assert only.reply_to is not None
    assert (only.reply_to.content, only.reply_to.needs_lookup, only.reply_to.explicit_text) == ("片段", False, True)
    automatic = normalised(text="?", reply_to_message=reply(text="all of it"), quote={"text": "all", "position": 0})
    assert automatic.reply_to is not None
    assert automatic.reply_to.selected is None


def test_q48_a_reply_with_id_and_date_only_is_looked_for_by_time() -> None:
    bare = {"message_id": 9, "chat": GROUP, "date": 1789999000}
    for target in (bare, reply()):
        found = normalised(text="?", reply_to_message=target)
        assert found.reply_to is not None
        wanted = found.reply_to.lookup
        assert wanted is not None
        assert (wanted.via, wanted.chat_id, wanted.message_id) == ("history", "-1002000000123", "9")
        assert wanted.quoted_at_ms == 1_789_999_000_000


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (reply(**{"from": ORIN}), "not-delivered"),
        ({"message_id": 9, "chat": GROUP, "date": 0}, "not-delivered"),
        (reply(location={"latitude": 1, "longitude": 2}), "unsupported"),
        (reply(poll={"question": "?"}), "unsupported"),
        (reply(pinned_message={}), "unsupported"),
    ],
    ids=["of-a-person", "no-time", "location", "poll", "notice"],
)
def test_what_no_history_can_tell_is_not_looked_for(target: dict[str, Any], reason: str) -> None:
    found = normalised(text="?", reply_to_message=target)
    assert found.reply_to is not None
    assert (found.reply_to.lookup, found.reply_to.unavailable_reason) == (None, reason)


def test_p5_only_one_level_is_quoted() -> None:
    inner = reply(text="inner")
    found = normalised(text="?", reply_to_message=reply(text="outer", reply_to_message=inner))
    assert "inner" not in found.model_dump_json()


@pytest.mark.parametrize("key", ["new_chat_members", "pinned_message", "forum_topic_created", "migrate_to_chat_id"])
def test_a_notice_is_ignored(key: str) -> None:
    found = normalised(**{key: {"id": 1}})
    assert (found.action, found.ignore_reason, found.system) == ("ignore", "notice", True)


def test_a_channel_post_that_telegram_forwards_is_nobodys_question() -> None:
    news = {"id": -1003000000888, "title": "Harbor News", "type": "channel"}
    platform_user = {"id": 777000, "is_bot": False, "first_name": "Telegram"}
    found = normalised(text="New quay", sender_chat=news, is_automatic_forward=True, **{"from": platform_user})
    assert (found.sender_id, found.system, found.action) == ("-1003000000888", True, "process")


def test_files_of_a_message() -> None:
    gif = {"file_id": "G", "file_name": "wave.mp4", "mime_type": "video/mp4", "file_size": 7}
    found = normalised(animation=gif, document=gif)
    [file] = found.attachments
    assert (file.kind, file.name, file.media_type, file.size) == ("video", "wave.mp4", "video/mp4", 7)
    kinds = {
        "voice": "audio", "audio": "audio", "video_note": "video", "document": "file", "sticker": "image",
    }  # fmt: skip
    for key, kind in kinds.items():
        assert [each.kind for each in normalised(**{key: {"file_id": "F"}}).attachments] == [kind]
    small, large = {"file_id": "s", "width": 90, "height": 60}, {"file_id": "l", "width": 900, "height": 600}
    assert normalised(photo=[large, small]).attachments[0].ref == {"file_id": "l"}


@pytest.mark.parametrize("event", [{"update_id": 1}, {"update_id": 1, "my_chat_member": {}}, {"poll_answer": {}}])
def test_what_is_no_message_gives_none(event: dict[str, Any]) -> None:
    assert channel("telegram").normalise(event, account()) == []


@pytest.mark.parametrize(
    "message", [5, None, {}, {"message_id": 1}, {"chat": {"id": 1}}, {"message_id": 1, "chat": {}}]
)
def test_c21_a_message_without_ids_is_malformed(message: Any) -> None:
    with pytest.raises(Malformed):
        channel("telegram").normalise({"update_id": 1, "message": message}, account())


def test_an_answer_goes_to_the_asker_in_the_same_topic() -> None:
    found = normalised(text="hi", message_thread_id=31, is_topic_message=True)
    target = channel("telegram").target(found)
    assert (target.chat_id, target.thread_id, target.reply_to) == ("-1002000000123", "31", "10")
