"""Feishu: the golden events, the vectors and their tampered forms, odd shapes, cards."""

import json
from typing import Any

import pytest

from shared.channels.feishu import CHANNEL
from shared.channels.feishu.card import visible_text
from shared.errors import Malformed, Unauthorised
from tests.contracts.golden import account_of, case_id, differences, load, reference_differences
from tests.unit.shared.channels.feishu_support import (
    FILES,
    KEY,
    ME,
    OWN,
    SIGNED_MS,
    TOKEN,
    Platform,
    account,
    encrypted,
    event,
    hook,
    looked_up,
    normalised,
    run,
    shown,
    signed,
    vector,
)


@pytest.mark.parametrize("path", FILES, ids=case_id)
def test_golden_events_copies_and_lookups(path: Any) -> None:
    fixture = load(path)
    who = account_of(fixture)
    [message] = CHANNEL.normalise(fixture["event"], who)
    assert differences(message, fixture["expect"]) == {}
    for copy in [fixture[key] for key in ("redelivery",) if key in fixture] + fixture.get("redelivery_more", []):
        [again] = CHANNEL.normalise(copy["event"], who)
        assert (again.keys[0], again.identity) == (message.keys[0], message.identity)
        assert sorted(again.keys) == sorted(copy["dedupe_keys"])
    for lookup in [fixture[key] for key in ("lookup",) if key in fixture] + fixture.get("lookup_variants", []):
        assert message.reply_to is not None
        assert message.reply_to.lookup is not None
        platform = Platform((lookup.get("http_status", 200), lookup["response"]))
        found = run(CHANNEL.lookup(message.reply_to.lookup, message, who, platform))
        assert reference_differences(found, lookup["expect_reply_to"]) == {}
        assert "SHOULD-NOT-LEAK" not in found.model_dump_json()
        [(call, method, url, _, _)] = platform.asked
        assert (call, method) == ("get_message", "GET")
        assert url == "https://open.feishu.cn" + lookup["request"]["path"]
        assert platform.params == [lookup["request"]["query"]]
    assert len(FILES) == 18


def test_encrypted_event_vector_is_verified_and_opened() -> None:
    request = vector("encrypted_event")["request"]
    asked = hook(request["body"], request["headers"])
    CHANNEL.verify(asked, account(), SIGNED_MS)
    assert CHANNEL.handshake(asked, account()) is None
    opened = CHANNEL.normalise(json.loads(asked.body), account())
    assert opened == CHANNEL.normalise(vector("encrypted_event")["decrypted"], account())
    assert opened[0].text == "帮我写一份周报"


@pytest.mark.parametrize(
    ("change", "late_ms"),
    [
        ({"X-Lark-Signature": "0" * 64}, 0),
        ({"X-Lark-Signature": ""}, 0),
        ({"X-Lark-Signature": "é"}, 0),
        ({"X-Lark-Request-Nonce": "1"}, 0),
        ({"X-Lark-Request-Timestamp": "1793580001"}, 0),
        ({"X-Lark-Request-Timestamp": "soon"}, 0),
        ({}, 300_001),
        ({}, -300_001),
        ({"body": " "}, 0),
        (None, 0),
    ],
)
def test_tampered_old_or_unsigned_events_are_refused(change: dict[str, str] | None, late_ms: int) -> None:
    request = vector("encrypted_event")["request"]
    more = dict(change or {})
    body = request["body"] + more.pop("body", "")
    headers = {} if change is None else request["headers"] | more
    with pytest.raises(Unauthorised):
        CHANNEL.verify(hook(body, headers), account(), SIGNED_MS + late_ms)


def test_the_token_inside_a_signed_body_must_hold() -> None:
    right = {"header": {"token": TOKEN}}
    CHANNEL.verify(signed(encrypted(right)), account(), SIGNED_MS + 300_000)
    for wrong in (encrypted({"header": {"token": "no"}}), encrypted({}), encrypted(right, "other"), "[]", "{"):
        with pytest.raises(Unauthorised):
            CHANNEL.verify(signed(wrong), account(), SIGNED_MS)


def test_url_verification_vectors_are_answered_unsigned_and_only_with_the_right_token() -> None:
    given = vector("url_verification")
    for name in ("request", "request_encrypted"):
        asked = hook(given[name]["body"])
        CHANNEL.verify(asked, account(), SIGNED_MS)
        answer = CHANNEL.handshake(asked, account())
        assert answer is not None
        assert (answer.status, answer.content_type) == (200, "application/json")
        assert json.loads(answer.body) == given["expect_response"]["json"]
    body = json.loads(given["request"]["body"])
    without_token = account(credentials={"encrypt_key": KEY})
    CHANNEL.verify(hook(given["request_encrypted"]["body"]), without_token, SIGNED_MS)
    for wrong in (json.dumps(body | {"token": "no"}), encrypted(body | {"token": "no"}), encrypted({"type": "x"})):
        with pytest.raises(Unauthorised):
            CHANNEL.verify(hook(wrong), account(), SIGNED_MS)
    with pytest.raises(Unauthorised):
        CHANNEL.verify(hook(json.dumps(body | {"a": "encrypt"})), without_token, SIGNED_MS)
    smuggled = event() | body
    assert CHANNEL.normalise(smuggled, account()) == []


def test_without_an_encrypt_key_only_an_insecure_account_is_served_and_the_token_still_counts() -> None:
    right, wrong = (hook(json.dumps({"header": {"token": token}})) for token in (TOKEN, "no"))
    with pytest.raises(Unauthorised):
        CHANNEL.verify(right, account(credentials={"verification_token": TOKEN}), SIGNED_MS)
    bold = account(credentials={"verification_token": TOKEN}, insecure=True)
    CHANNEL.verify(right, bold, SIGNED_MS)
    with pytest.raises(Unauthorised):
        CHANNEL.verify(wrong, bold, SIGNED_MS)
    CHANNEL.verify(wrong, account(credentials={}, insecure=True), SIGNED_MS)


@pytest.mark.parametrize(
    "broken",
    [
        {"encrypt": 5}, {"encrypt": "é"}, {"encrypt": "AAAA"}, json.loads(encrypted({"a": 1}, "other key")),
        json.loads(encrypted([])), [], None, event(message_id=None), event(chat_id={}), event(sender={"sender_id": []}),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_malformed(broken: Any) -> None:
    with pytest.raises(Malformed):
        CHANNEL.normalise(broken, account())


@pytest.mark.parametrize("odd", [None, 5, 10**400, float("nan"), [], [[]], {}, {"a": []}, "\ud800", "[" * 99, True])
def test_any_type_anywhere_reads_as_absent(odd: Any) -> None:
    for key in ("content", "message_type", "mentions", "parent_id", "root_id", "thread_id", "create_time", "chat_type"):
        broken = event()
        broken["event"]["message"][key] = odd
        [found] = CHANNEL.normalise(broken, account())
        found.model_dump_json().encode()
    for kind in ("text", "post", "interactive", "file"):
        for content in ({"text": odd}, {"content": odd}, {"content": [odd, [odd]]}, {"elements": odd}, {"title": odd}):
            normalised(content, message_type=kind).model_dump_json()


def test_c16_q56_q57_parent_before_root_and_a_topics_head_is_no_quote() -> None:
    def quoted(**ids: str) -> str | None:
        reference = normalised(**ids).reply_to
        return reference.message_id if reference else None

    assert quoted(parent_id="om_p", root_id="om_r") == "om_p"
    assert quoted(root_id="om_r", parent_id="") == "om_r"
    assert quoted(root_id=OWN, parent_id=OWN) is None
    assert quoted(root_id="om_h", parent_id="om_h", thread_id="omt_1") is None
    assert quoted(root_id="om_h", parent_id="om_p", thread_id="omt_1") == "om_p"
    assert normalised(root_id="om_h", thread_id="").thread_id is None


def test_mentions_are_read_whole_and_everyone_is_known_without_an_entry() -> None:
    mentions = [
        {"key": "@_user_1", "name": "bot", "id": {"open_id": ME}},
        {"key": "@_user_10", "name": "ten", "id": {"open_id": "ou_ten"}},
    ]
    found = normalised({"text": "@_user_1 @_user_10 @_all @_allow @_user_11"}, mentions=mentions)
    assert found.text == "@ten @所有人 @_allow @_user_11"
    assert (found.mentions, found.addressed, found.mentions_all) == ((ME, "ou_ten"), True, True)
    [unknown] = CHANNEL.normalise(event(mentions=mentions), account(self_id=""))
    assert (unknown.self_known, unknown.mentions_bot) == (False, None)


def test_own_messages_are_ignored_by_open_id_and_app_id() -> None:
    for sender in ({"open_id": ME}, {"open_id": "ou_x", "app_id": "cli_app"}):
        found = normalised(sender={"sender_id": sender, "sender_type": "bot"})
        assert (found.action, found.ignore_reason, found.sender_is_bot) == ("ignore", "self", True)


def test_q60_q61_a_card_gives_visible_text_only() -> None:
    assert visible_text({"type": "card", "data": {"card_id": "c1"}}) == ""
    assert visible_text({"elements": [[{"tag": "text", "text": "请升级至最新版本客户端，以查看内容"}]]}) == ""
    builder = {
        "header": {"title": {"tag": "plain_text", "content": "Title"}},
        "elements": [
            {"tag": "div", "text": {"tag": "lark_md", "content": "Body"}, "fields": [{"text": {"content": "Field"}}]},
            {"tag": "action", "actions": [{"tag": "button", "text": {"content": "Go"}, "value": {"k": "SECRET"}}]},
            {"tag": "column_set", "columns": [{"tag": "column", "elements": [{"tag": "markdown", "content": "Deep"}]}]},
        ],
    }
    assert visible_text(builder) == "Title\nBody\nField\nDeep"
    nested: dict[str, Any] = {"tag": "div", "text": "leaf"}
    for _ in range(11):
        nested = {"tag": "div", "elements": [nested]}
    assert visible_text({"elements": [nested]}) == "leaf"
    assert visible_text({"elements": [{"tag": "div", "elements": [nested]}]}) == ""
    assert visible_text({"elements": [{"tag": "div", "text": "x"}] * 1500}).count("x") == 1000
    found, _ = looked_up(shown(msg_type="interactive", body={"content": '{"type": "template", "data": {}}'}))
    assert (found.unavailable_reason, found.content) == ("unsupported", None)
