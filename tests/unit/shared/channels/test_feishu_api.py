"""Feishu: lookups, sends, logins, files."""

import json
from typing import Any

import pytest

from shared.channels.feishu import CHANNEL
from shared.channels.port import Delivery, Switches, Target
from shared.channels.tokens import TOKENS
from shared.errors import EffectUnknown, Refused, Transient
from tests.unit.shared.channels.feishu_support import (
    CHAT,
    ME,
    OWN,
    Platform,
    account,
    looked_up,
    normalised,
    run,
    sent,
    shown,
)
from workers.ops.scenario.wires.feishu import WIRE


@pytest.fixture(autouse=True)
def _no_tokens() -> None:  # pyright: ignore[reportUnusedFunction]
    TOKENS.forget(account())


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((403, b"no"), "permission-denied"),
        ((404, b"no"), "not-found"),
        ((500, b""), "not-delivered"),
        ((200, b"<html>"), "not-delivered"),
        ((429, {"code": 99991400}), "not-delivered"),
        ((400, {"code": 99991663}), "not-delivered"),
        (EffectUnknown("late"), "not-delivered"),
        (Transient("down"), "not-delivered"),
        ((200, {"code": 0, "data": {"items": []}}), "not-found"),
        ((200, {"code": 0, "data": {}}), "not-delivered"),
        (shown(message_id="om_other"), "not-found"),
        (shown(chat_id=None), "not-found"),
        (shown(body={"content": "This message was recalled"}), "deleted"),
        (shown(msg_type="share_user", body={"content": "{}"}), "unsupported"),
    ],
)  # fmt: skip
def test_p3_q58_q59_a_failed_lookup_is_a_reason(answer: Any, reason: str) -> None:
    found, platform = looked_up(answer)
    assert (found.message_id, found.unavailable_reason, found.content) == ("om_q", reason, None)
    assert (len(platform.asked), found.lookup) == (1, None)


@pytest.mark.parametrize(
    ("change", "right"),
    [
        ({}, True), ({"sender": {"id": "ou_z"}}, False), ({"chat_id": "oc_z"}, False), ({"parent_id": "om_z"}, False),
        ({"thread_id": "omt_z"}, False), ({"deleted": True}, False), ({"message_id": "om_z"}, False),
    ],
)  # fmt: skip
def test_the_source_is_verified_by_sender_chat_topic_and_parent(change: dict[str, Any], right: bool) -> None:
    item: dict[str, Any] = {"message_id": OWN, "sender": {"id": "ou_a"}, "parent_id": "om_q", "root_id": "om_r"}
    platform = Platform(shown(**item | change))
    message = normalised(parent_id="om_q", root_id="om_r")
    assert run(CHANNEL.verify_source(message, account(), platform)) is right
    with pytest.raises(Transient):
        run(CHANNEL.verify_source(message, account(), Platform(EffectUnknown("late"))))


def test_a_reply_names_the_askers_message_and_a_proactive_one_the_chat() -> None:
    platform = Platform(*[(200, {"code": 0, "data": {"message_id": "om_new"}})] * 3)
    assert sent(platform) == Delivery("sent", ids=("om_new",), reason="sent")
    assert sent(platform, target=Target(CHAT, "group", "omt_1", OWN)).state == "sent"
    assert sent(platform, target=Target(CHAT, "private")).state == "sent"
    (call, method, url, headers, reply), (*_, topic), (_, _, chat_url, _, message) = platform.asked
    assert (call, method, headers) == ("send", "POST", {"authorization": "Bearer t-1"})
    assert url == f"https://open.feishu.cn/open-apis/im/v1/messages/{OWN}/reply"
    assert (reply["msg_type"], json.loads(reply["content"])) == ("text", {"text": "hello"})
    assert 0 < len(reply["uuid"]) <= 50
    assert topic == reply | {"reply_in_thread": True}
    assert (chat_url, message["receive_id"]) == ("https://open.feishu.cn/open-apis/im/v1/messages", CHAT)
    assert platform.params == [None, None, {"receive_id_type": "chat_id"}]
    assert platform.logins == 1
    row = WIRE.row("fs", url, reply)
    assert (row.text, row.reply_to) == ("hello", OWN)


def test_styles_become_a_post_that_pings_nobody_and_bare_text_follows_a_refusal_only() -> None:
    markdown = 'a **b** [l](https://e.example/x)\n\n```py\nx = 1\ny\n```\n<at user_id="all"></at>'
    platform = Platform((400, {"code": 230001}), (200, {"code": 0, "data": {"message_id": "om_1"}}))
    assert sent(platform, markdown).state == "sent"
    post, bare = (asked[-1] for asked in platform.asked)
    assert json.loads(post["content"])["zh_cn"]["content"] == [
        [
            {"tag": "text", "text": "a "},
            {"tag": "text", "text": "b", "style": ["bold"]},
            {"tag": "text", "text": " "},
            {"tag": "a", "text": "l", "href": "https://e.example/x"},
        ],
        [{"tag": "text", "text": ""}],
        [{"tag": "code_block", "language": "PY", "text": "x = 1\ny"}],
        [{"tag": "text", "text": '<at user_id="all"></at>'}],
    ]
    assert WIRE.row("fs", "", post).text == 'a b l\n\nx = 1\ny\n<at user_id="all"></at>'
    assert bare["msg_type"] == "text"
    assert "<at" not in json.loads(bare["content"])["text"]
    assert bare["uuid"] != post["uuid"]


@pytest.mark.parametrize(
    ("answer", "state", "retry", "wait_s"),
    [
        ((429, b""), "not-sent", True, 3.0),
        ((400, {"code": 99991400}), "not-sent", True, 3.0),
        ((200, {"code": 230020}), "not-sent", True, 3.0),
        ((400, {"code": 99991663}), "not-sent", True, None),
        ((400, {"code": 230002}), "not-sent", False, None),
        ((200, {"code": 230002}), "not-sent", False, None),
        ((403, b""), "not-sent", False, None),
        ((502, b""), "unknown", False, None),
        ((400, {"code": 230049}), "unknown", False, None),
        ((200, b"<html>"), "unknown", False, None),
        ((200, {"code": 0, "data": {}}), "unknown", False, None),
        (Transient("down"), "not-sent", True, None),
        (EffectUnknown("late"), "unknown", False, None),
    ],
)
def test_what_an_answer_to_a_send_means(answer: Any, state: str, retry: bool, wait_s: float | None) -> None:
    platform = Platform(answer)
    found = sent(platform)
    assert (found.state, found.retry, found.retry_after_s) == (state, retry, wait_s)
    assert len(platform.asked) == 1


@pytest.mark.parametrize(
    ("login", "retry"),
    [(EffectUnknown("late"), True), ((503, b""), True), ((200, {"code": 10014}), False), ((400, {"code": 1}), False)],
)
def test_a_failed_login_sends_nothing(login: Any, retry: bool) -> None:
    platform = Platform()
    platform.login = login
    found = sent(platform)
    assert (found.state, found.retry, platform.asked) == ("not-sent", retry, [])


def test_a_refused_token_makes_the_next_try_log_in_again() -> None:
    platform = Platform((400, {"code": 99991663}), (200, {"code": 0, "data": {"message_id": "om_1"}}))
    assert [sent(platform).state, sent(platform).state, platform.logins] == ["not-sent", "sent", 2]


def test_read_only_makes_no_request() -> None:
    platform = Platform()
    assert sent(platform, switches=Switches(read_only=True)) == Delivery("not-sent", reason="read-only-mode")
    target = Target(CHAT, "group", None, OWN)
    run(CHANNEL.acknowledge(target, "working", account(), platform, Switches(safe_mode=True)))
    assert (platform.asked, platform.logins) == ([], 0)


def test_the_reaction_comes_and_goes() -> None:
    mine = {"reaction_id": "r2", "operator": {"operator_type": "app", "operator_id": "cli_app"}}
    other = {"reaction_id": "r1", "operator": {"operator_type": "app", "operator_id": "cli_other"}}
    platform = Platform((200, {"code": 0}), (200, {"code": 0, "data": {"items": [other, mine]}}), (200, {"code": 0}))
    target = Target(CHAT, "group", None, OWN)
    for state in ("working", "done"):
        run(CHANNEL.acknowledge(target, state, account(), platform, Switches()))
    url = f"https://open.feishu.cn/open-apis/im/v1/messages/{OWN}/reactions"
    assert [asked[1:3] for asked in platform.asked] == [("POST", url), ("GET", url), ("DELETE", f"{url}/r2")]


def test_a_file_comes_by_its_message_and_key_and_a_foreign_path_is_refused() -> None:
    [picture] = normalised({"image_key": "img/1"}, message_type="image").attachments
    platform = Platform((200, b"\x89PNG"), (400, {"code": 234001, "msg": "no"}))
    assert run(CHANNEL.fetch(picture, account(), platform, 100)) == b"\x89PNG"
    assert platform.asked[0][2].endswith(f"/messages/{OWN}/resources/img%2F1")
    assert platform.params == [{"type": "image"}]
    with pytest.raises(Refused):
        run(CHANNEL.fetch(picture, account(), platform, 100))
    [sticker] = normalised({"file_key": "k"}, message_type="sticker").attachments
    climbing = picture.model_copy(update={"ref": picture.ref | {"key": ".."}})
    for hopeless in (sticker, climbing):
        with pytest.raises(Refused):
            run(CHANNEL.fetch(hopeless, account(), Platform(), 100))


def test_identity_is_the_open_id_and_the_app_id() -> None:
    platform = Platform((200, {"code": 0, "bot": {"open_id": ME, "app_name": "Ferry"}}))
    who = run(CHANNEL.identity(account(), platform))
    assert (who.self_ids, who.name) == ((ME, "cli_app"), "Ferry")
