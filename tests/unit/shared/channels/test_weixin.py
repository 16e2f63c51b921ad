"""Weixin: its golden events, the shapes that none of them shows, and the bridge that brings them."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from weixin_support import MESSAGE_ID, QUOTED_ID, USER, account, item, normalised, quote, raw

from shared.channels import bridge
from shared.channels.port import HookRequest
from shared.channels.weixin import CHANNEL
from shared.errors import Malformed, Unauthorised
from shared.message import Lookup
from tests.contracts.golden import FIXTURES, account_of, case_id, cases, differences, load, reference_differences
from workers.quotes.policy import unresolved

FILES = cases("weixin")


@pytest.mark.parametrize("path", FILES, ids=case_id)
def test_golden_event_and_what_is_left_of_its_quote_without_an_index_hit(path: Path) -> None:
    fixture = load(path)
    [message] = CHANNEL.normalise(fixture["event"], account_of(fixture))
    assert differences(message, fixture["expect"]) == {}
    assert CHANNEL.normalise(fixture["event"]["msgs"][0], account_of(fixture)) == [message]
    if lookup := fixture.get("lookup"):
        assert message.reply_to is not None
        assert message.reply_to.lookup is not None
        assert message.reply_to.lookup.via == "index"
        assert reference_differences(unresolved(message.reply_to), lookup["expect_reply_to"]) == {}
    if ms := fixture.get("decode", {}).get("ms"):
        assert message.reply_to is not None
        assert message.reply_to.lookup is not None
        assert message.reply_to.lookup.quoted_at_ms == ms


def test_there_are_thirteen_golden_events() -> None:
    assert len(FILES) == 13


@pytest.mark.parametrize("name", ["duplicate_delivery", "duplicate_delivery_same_id"])
def test_c13_a_second_copy_shares_a_key_and_is_no_conflict(name: str) -> None:
    fixture = load(FIXTURES / "weixin" / f"{name}.json")
    [first] = CHANNEL.normalise(fixture["event"], account_of(fixture))
    [second] = CHANNEL.normalise(fixture["redelivery"]["event"], account_of(fixture))
    assert sorted(second.keys) == sorted(fixture["redelivery"]["dedupe_keys"])
    assert set(first.keys) & set(second.keys)
    assert first.identity == second.identity
    assert first.windows == {first.keys[-1]: 12_000}
    assert first.keys[-1] == second.keys[-1]


def test_c14_a_fingerprint_is_of_words_alone_and_of_how_they_were_said() -> None:
    spoken = normalised({"type": 3, "voice_item": {"text": "现在呢"}})
    assert spoken.windows.keys().isdisjoint(normalised().windows)
    assert normalised(item(text_item={"text": " 现在呢\n"})).windows == normalised().windows
    wordless = normalised({"type": 2, "image_item": {"mid_size": 1}})
    assert (wordless.keys, wordless.windows) == ((f"id:{MESSAGE_ID}", "client:c1"), {})


def test_q79_ids_are_exact_and_tell_the_time() -> None:
    vectors = load(FIXTURES / "_vectors" / "weixin_message_id.json")["vectors"]
    for vector in vectors:
        for written in (vector["message_id"], int(vector["message_id"])):
            found = normalised(message_id=written)
            assert (found.message_id, found.sent_at_ms) == (vector["message_id"], vector["ms"])
            assert found.keys[0] == f"id:{vector['message_id']}"
    assert normalised(message_id=2**64 - 1).message_id == "18446744073709551615"


@pytest.mark.parametrize("quoted", ["abc", "1" * 15, "v1:7500581098742245128", str((1_577_836_799_999) << 22), 2**63])
def test_q80_what_is_no_time_is_none(quoted: object) -> None:
    found = quote(message_item={"type": 0, "msg_id": quoted, "create_time_ms": 0, "update_time_ms": 1788277887000})
    assert found.reply_to is not None
    assert found.reply_to.lookup is not None
    assert found.reply_to.lookup.quoted_at_ms == 1788277887000


def test_q81_a_quote_by_id_is_looked_for_in_the_index() -> None:
    found = quote(message_item={"type": 0, "msg_id": QUOTED_ID, "create_time_ms": 1788277888000}, svr_id="7")
    assert found.reply_to is not None
    assert found.reply_to.lookup == Lookup(
        via="index", chat_id=USER, message_id=QUOTED_ID, keys=(QUOTED_ID, "7"), quoted_at_ms=1788277887998
    )
    assert (CHANNEL.limits.keeps_index, CHANNEL.limits.looks_back) == (True, True)


@pytest.mark.parametrize(
    ("ref", "content", "files", "explicit"),
    [
        ({"message_item": {"type": 8, "text_item": {"text": "原文"}}, "title": "摘要"}, "原文", [], True),
        ({"message_item": {"type": 0, "text_item": {"text": "原文"}}}, "原文", [], True),  # F-13
        ({"message_item": {"type": 3, "voice_item": {"text": "听写"}}}, "听写", ["audio"], True),
        ({"message_item": {"type": 0}, "title": "摘要"}, "摘要", [], False),  # Q-67, F-11
        ({"message_item": {"type": 4, "file_item": {"file_name": "表.pdf"}}}, None, ["file"], False),  # F-12
        ({"message_item": {"type": 5, "video_item": {"play_length": 3}}}, None, ["video"], False),
        (  # P-5: one level only
            {"message_item": {"text_item": {"text": "外"}, "ref_msg": {"message_item": {"text_item": {"text": "内"}}}}},
            "外", [], True,
        ),
    ],
)  # fmt: skip
def test_q66_q67_evidence_in_the_payload(ref: Any, content: str | None, files: list[str], explicit: bool) -> None:
    found = quote(**ref).reply_to
    assert found is not None
    assert (found.content, [a.kind for a in found.attachments], found.explicit_text) == (content, files, explicit)
    assert (found.source, found.lookup, found.unavailable_reason) == ("payload", None, None)


@pytest.mark.parametrize(
    ("ref", "reason"),
    [
        ({"message_item": {"type": 8}}, "not-delivered"),  # F-10
        ({"message_item": {"type": 1, "text_item": {"text": " \n"}}}, "not-delivered"),  # F-14
        ({"message_item": {"type": 77}}, "unsupported"),
        ({"message_item": {"type": 77, "msg_id": QUOTED_ID}}, "unsupported"),
        ({"message_item": {"type": 1, "msg_id": QUOTED_ID}}, "not-delivered"),
    ],
)
def test_an_unreadable_quote_says_why(ref: Any, reason: str) -> None:
    found = quote(**ref).reply_to
    assert found is not None
    assert (found.explicit_text, found.content) == (False, None)
    assert unresolved(found).unavailable_reason == reason


def test_p1_a_voice_message_is_its_transcript_once() -> None:
    ref = {"message_item": {"text_item": {"text": "原文"}}}
    found = normalised({"type": 3, "voice_item": {"text": "听写", "media": {}}, "ref_msg": ref})
    assert (found.text, found.kind, found.attachments[0].transcript) == ("听写", "audio", None)
    assert found.reply_to is not None
    assert found.reply_to.content == "原文"


def test_every_message_of_an_answer_and_none_of_an_empty_or_refused_one() -> None:
    event = {"ret": 0, "msgs": [raw(message_id=5), {"message_id": 6}, raw(message_id=None, client_id="c2")]}
    found = CHANNEL.normalise(event, account())
    assert [(each.message_id, each.keys[0]) for each in found] == [("5", "id:5"), ("c2", "client:c2")]
    for empty in ({}, {"ret": -14, "errcode": -14}, {"msgs": None}, {"msgs": []}):
        assert CHANNEL.normalise(empty, account()) == []
    assert normalised(message_id=None, client_id="", seq=7).keys[0] == "seq:7"


@pytest.mark.parametrize("more", [{"from_user_id": None}, {"message_id": None, "client_id": None, "seq": "x"}])
def test_a_message_without_sender_or_name_is_malformed(more: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        normalised(**more)


def test_what_was_taken_back_is_not_answered() -> None:
    found = normalised(delete_time_ms=1788281390000)
    assert (found.action, found.ignore_reason) == ("ignore", "delete-notice")


def test_a_wrong_type_anywhere_reads_as_absent_or_is_malformed() -> None:
    """The richest golden event with every value of it replaced in turn by what does not belong there."""
    event = load(FIXTURES / "weixin" / "quote_image_only.json")["event"]
    odd: list[Any] = [None, True, "\ud800", "", 10**400, -1, math.nan, math.inf, 1.5, [], {}, [[]], [{}], {"a": {}}]
    for place in places(event):
        for value in odd:
            try:
                for found in CHANNEL.normalise(replaced(event, place, value), account()):
                    found.model_dump_json().encode()
            except Malformed:
                continue
    for value in odd:
        if not isinstance(value, dict):
            with pytest.raises(Malformed):
                CHANNEL.normalise(value, account())


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, below in inside for place in places(below, (*at, key)))][0 if at else 1 :]


def replaced(value: Any, place: tuple[Any, ...], by: Any) -> Any:
    if not place:
        return by
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = replaced(value[place[0]], place[1:], by)
    return copy


def test_c22_only_what_the_bridge_signed_comes_in() -> None:
    body, now_s = json.dumps({"msgs": [raw()]}).encode(), 1_788_281_383
    right = bridge.signed("tide", body, now_s)
    CHANNEL.verify(HookRequest("POST", right, {}, body), account(), now_s * 1000)
    for headers, came, late_ms in ((right, body + b" ", 0), ({}, body, 0), (right, body, 301_000)):
        with pytest.raises(Unauthorised):
            CHANNEL.verify(HookRequest("POST", headers, {}, came), account(), now_s * 1000 + late_ms)
    assert CHANNEL.handshake(HookRequest("POST", right, {}, body), account()) is None
