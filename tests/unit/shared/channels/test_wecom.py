"""WeCom: golden events and vectors, what lets an event in, what is quoted, what is sent and what comes of it."""

import base64
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from one_answer import Recorder, answered, ended

from shared.channels.port import Delivery, HookRequest, Part, Switches, Target
from shared.channels.wecom import CHANNEL
from shared.errors import EffectUnknown, Malformed, Refused, Transient, Unauthorised
from shared.message import Attachment, Lookup, Message
from shared.settings import AccountSettings
from tests.contracts.golden import FIXTURES, account_of, case_id, cases, differences, load
from workers.ops.scenario.wires.wecom import WIRE

FILES = cases("wecom")
URL = "https://qyapi.weixin.qq.com/cgi-bin/aibot/response?response_code=TIDE"


def vector(name: str) -> dict[str, Any]:
    return load(FIXTURES / "_vectors" / f"wecom_{name}.json")


CALLBACK, CHECK, MEDIA = vector("http_callback"), vector("url_verify"), vector("media")
SECRETS = {key: CALLBACK["secrets"][key] for key in ("token", "encoding_aes_key")}
STAMP_MS = 1_793_580_000_000


def account(**more: Any) -> AccountSettings:
    known = {"id": "wc", "channel": "wecom", "self_id": "aibTIDE", "self_name": "小助", "credentials": SECRETS}
    return AccountSettings.model_validate(known | more)


def hook(saved: Mapping[str, Any], **query: str) -> HookRequest:
    return HookRequest(saved["method"], {}, {**saved["query"], **query}, saved.get("body", "").encode())


def body(**more: Any) -> dict[str, Any]:
    base = {
        "msgid": "m1", "aibotid": "aibTIDE", "chattype": "group", "chatid": "wr1", "from": {"userid": "lisi"},
        "response_url": URL, "msgtype": "text", "text": {"content": "@小助 hi"},
    }  # fmt: skip
    return {key: value for key, value in (base | more).items() if value is not None}


def normalised(who: AccountSettings | None = None, **more: Any) -> Message:
    [found] = CHANNEL.normalise(body(**more), who or account())
    return found


def sent_by(
    api: Recorder, url: str = URL, who: AccountSettings | None = None, switches: Switches | None = None
) -> Delivery:
    where = Target("wr1", "group", None, "m1", {"response_url": url} if url else {})
    part = Part("text", text="**潮** 12:40")
    return ended(CHANNEL.send(where, part, "out-0", who or account(), api, switches or Switches()))


def fetched(api: Recorder, ref: dict[str, str], most: int = 1 << 20, **more: Any) -> bytes:
    return ended(CHANNEL.fetch(Attachment(kind="image", ref=ref), account(**more), api, most))


@pytest.mark.parametrize("path", FILES, ids=case_id)
def test_q40_q41_c18_event_is_normalised_as_the_fixture_says(path: Path) -> None:
    fixture = load(path)
    [message] = CHANNEL.normalise(fixture["event"], account_of(fixture))
    assert differences(message, fixture["expect"]) == {}
    assert Message.model_validate_json(message.model_dump_json(exclude_defaults=True)) == message
    # By HTTP the same body comes bare, once it is decrypted.
    assert CHANNEL.normalise(fixture["event"]["body"], account_of(fixture)) == [message]
    assert CHANNEL.target(message).route == {"response_url": fixture["event"]["body"]["response_url"]}


def test_redelivery_has_the_same_key_and_identity() -> None:
    assert len(FILES) == 16
    fixture = load(FIXTURES / "wecom" / "duplicate_delivery.json")
    [first] = CHANNEL.normalise(fixture["event"], account_of(fixture))
    [second] = CHANNEL.normalise(fixture["redelivery"]["event"], account_of(fixture))
    assert (second.keys, second.identity) == (first.keys, first.identity)


def test_callback_vector_is_let_in_and_opened() -> None:
    request = hook(CALLBACK["request"])
    CHANNEL.verify(request, account(), STAMP_MS)
    assert CHANNEL.handshake(request, account()) is None
    event = json.loads(request.body)
    assert CHANNEL.normalise(event, account()) == CHANNEL.normalise(CALLBACK["decrypted"], account())
    assert (CHANNEL.accepted.status, CHANNEL.accepted.body) == (200, "")


def test_url_check_is_answered_by_the_decrypted_text() -> None:
    request = hook(CHECK["request"])
    CHANNEL.verify(request, account(), STAMP_MS)
    answer = CHANNEL.handshake(request, account())
    assert answer is not None
    assert (answer.status, answer.body, answer.content_type) == (200, CHECK["expect_response"]["body"], "text/plain")


@pytest.mark.parametrize(
    "query",
    [
        {"nonce": "263014781"},
        {"msg_signature": CALLBACK["request"]["query"]["msg_signature"].upper()},
        {"msg_signature": ""},
        {"msg_signature": "\ud800é"},
        {"timestamp": "1793580001"},
        {"timestamp": "１７９３５８００００"},
        {"timestamp": ""},
    ],
)
def test_tampered_callback_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(Unauthorised):
        CHANNEL.verify(hook(CALLBACK["request"], **query), account(), STAMP_MS)


@pytest.mark.parametrize("raw", [b"", b"{}", b'{"encrypt": 7}', b"[" * 100_000, b"\xff", b'{"encrypt": "K47x"}'])
def test_another_body_is_refused(raw: bytes) -> None:
    with pytest.raises(Unauthorised):
        CHANNEL.verify(HookRequest("POST", {}, CALLBACK["request"]["query"], raw), account(), STAMP_MS)


@pytest.mark.parametrize("sign", [-1, 1])
def test_c22_signed_time_has_a_window_of_five_minutes(sign: int) -> None:
    CHANNEL.verify(hook(CALLBACK["request"]), account(), STAMP_MS + sign * 300_000)
    with pytest.raises(Unauthorised):
        CHANNEL.verify(hook(CALLBACK["request"]), account(), STAMP_MS + sign * 300_001)


def test_without_a_token_only_an_insecure_account_takes_events() -> None:
    with pytest.raises(Unauthorised):
        CHANNEL.verify(hook(CALLBACK["request"]), account(credentials={}), STAMP_MS)
    CHANNEL.verify(HookRequest("POST", {}, {}, b"{}"), account(credentials={}, insecure=True), STAMP_MS)


OTHER_KEY = base64.b64encode(b"k" * 32).decode().rstrip("=")


@pytest.mark.parametrize("key", ["", "short", OTHER_KEY, "ключ" * 11])
def test_a_wrong_key_opens_nothing(key: str) -> None:
    wrong = account(credentials=SECRETS | {"encoding_aes_key": key})
    with pytest.raises(Malformed):
        CHANNEL.normalise(json.loads(CALLBACK["request"]["body"]), wrong)
    with pytest.raises(Malformed):
        CHANNEL.handshake(hook(CHECK["request"]), wrong)


def sealed(clear: bytes) -> str:
    key = base64.b64decode(SECRETS["encoding_aes_key"] + "=")
    pad = 32 - len(clear) % 32
    writer = Cipher(algorithms.AES(key), modes.CBC(key[:16])).encryptor()
    return base64.b64encode(writer.update(clear + bytes([pad]) * pad) + writer.finalize()).decode()


@pytest.mark.parametrize(
    "clear",
    [
        b"", b"r" * 18, b"r" * 16 + b"\x7f\xff\xff\xff{}", b"r" * 16 + b"\0\0\0\x02[]", b"r" * 16 + b"\0\0\0\x01\xff",
        b"r" * 16 + (200).to_bytes(4, "big") + b"[" * 200, b"r" * 16 + b"\0\0\0\x0d{\"encrypt\":1}",
    ],
)  # fmt: skip
def test_what_opens_to_no_event_is_malformed(clear: bytes) -> None:
    with pytest.raises(Malformed):
        CHANNEL.normalise({"encrypt": sealed(clear)}, account())


def test_c15_without_the_bots_name_the_text_is_kept_and_any_mention_counts() -> None:
    found = normalised(account(self_name=""))
    assert (found.text, found.mentions_bot, found.addressed) == ("@小助 hi", None, True)
    found = normalised(account(self_name=""), text={"content": "hi"})
    assert (found.mentions_bot, found.addressed) == (None, False)


@pytest.mark.parametrize(
    ("said", "text", "mine"),
    [
        ("你好@小助", "你好", True),
        ("看看 @小助 这个", "看看 这个", True),
        ("@小助\u2005/stop", "/stop", True),
        ("@小助，在吗", "，在吗", True),
        ("@小助你好", "你好", True),
        ("@小助手 @小助 hi", "@小助手 hi", True),
        ("发 a@小助.com", "发 a@小助.com", None),
        ("@王五 hi", "@王五 hi", None),
    ],
)
def test_only_the_bots_own_mention_is_removed(said: str, text: str, mine: bool | None) -> None:
    found = normalised(text={"content": said})
    assert (found.text, found.mentions_bot, found.addressed) == (text, mine, bool(mine))


def test_in_private_nothing_is_a_mention() -> None:
    found = normalised(chattype="single", chatid=None)
    assert (found.chat_id, found.text, found.mentions_bot, found.addressed) == ("lisi", "@小助 hi", None, False)


@pytest.mark.parametrize(
    ("quote", "content", "reason"),
    [
        ({"msgtype": "text", "text": {"content": "[该消息类型暂不能展示]"}}, None, "unsupported"),
        ({"msgtype": "card", "card": {}}, None, "unsupported"),
        ({"msgtype": "text", "text": {"content": "  "}}, None, "not-delivered"),
        ({}, None, "not-delivered"),
        ({"msgtype": "video", "video": {"url": "https://x"}}, None, None),
        ({"msgtype": "text", "text": {"content": "a"}, "quote": {"msgtype": "text"}}, "a", None),
    ],
)
def test_a_quote_without_content_says_why(quote: Any, content: str | None, reason: str | None) -> None:
    found = normalised(quote=quote).reply_to
    assert found is not None
    assert (found.content, found.unavailable_reason, found.lookup) == (content, reason, None)
    assert found.explicit_text is (content is not None)
    assert found.source == ("none" if reason else "payload")


def test_own_messages_events_and_unknown_types() -> None:
    own: dict[str, Any] = {"from": {"userid": "aibTIDE"}}
    found = normalised(None, **own)
    assert (found.action, found.ignore_reason) == ("ignore", "self")
    assert CHANNEL.normalise(body(msgtype="event", event={"eventtype": "enter_chat"}), account()) == []
    assert CHANNEL.normalise(body(msgtype="stream", stream={"id": "s"}), account()) == []
    assert CHANNEL.normalise({"cmd": "aibot_event_callback", "body": {}}, account()) == []
    assert normalised(create_time=1_700_000_000).sent_at_ms == 1_700_000_000_000
    assert [each.kind for each in normalised(msgtype="location").attachments] == ["other"]
    assert [each.kind for each in normalised(msgtype="image").attachments] == ["image"]


ODD: list[Any] = [None, True, -1, 10**400, math.nan, "\ud800", [], ["x"], {}, {"content": 7}, [[]], {"msg_item": "x"}]


@pytest.mark.parametrize(
    "key", [*body(), "quote", "mixed", "image", "voice", "create_time", "cmd", "encrypt", "headers"]
)
def test_any_value_anywhere_gives_a_message_or_malformed(key: str) -> None:
    kinds = (key, "mixed", "text")
    for value in ODD:
        for kind in kinds:
            for event in (body(msgtype=kind) | {key: value}, {"cmd": "aibot_msg_callback", "body": {key: value}}):
                try:
                    messages = CHANNEL.normalise(event, account())
                except Malformed:
                    continue
                for message in messages:
                    message.model_dump_json().encode()
    for value in ODD:
        with pytest.raises(Malformed):
            CHANNEL.normalise(value, account())


def test_a_reply_is_posted_to_the_response_url() -> None:
    api = answered(200, WIRE.success(URL, {}, 1, 0))
    assert sent_by(api) == Delivery("sent", (), "sent")
    [(call, method, url, posted, headers)] = api.asked
    assert (call, method, url, headers) == ("send", "POST", URL, None)
    assert posted == {"msgtype": "markdown", "markdown": {"content": "**潮** 12:40"}}
    assert WIRE.row("wc", url, posted).text == "**潮** 12:40"
    assert WIRE.took({"errcode": 0})


@pytest.mark.parametrize(
    ("api", "state", "reason", "retry", "wait_s"),
    [
        (answered(429, {}, **{"Retry-After": "7"}), "not-sent", "rate-limited", True, 7.0),
        (answered(200, WIRE.refusal(429, None)), "not-sent", "rate-limited", True, None),
        (answered(200, WIRE.refusal(400, None)), "not-sent", "delivery-refused", False, None),
        (answered(404, {}), "not-sent", "delivery-refused", False, None),
        (answered(302, {}), "unknown", "delivery-unknown", False, None),
        (answered(502, {}), "unknown", "delivery-unknown", False, None),
        (answered(200, {"errcode": -1}), "unknown", "delivery-unknown", False, None),
        (answered(200, {"errcode": "0"}), "unknown", "delivery-unknown", False, None),
        (answered(200, b"<html>"), "unknown", "delivery-unknown", False, None),
        (answered(200, []), "unknown", "delivery-unknown", False, None),
        (Recorder(Transient("no connection")), "not-sent", "not-connected", True, None),
        (Recorder(EffectUnknown("broken off")), "unknown", "delivery-unknown", False, None),
        (Recorder(Refused("no address")), "not-sent", "delivery-refused", False, None),
    ],
)
def test_what_becomes_of_a_reply(api: Recorder, state: str, reason: str, retry: bool, wait_s: float | None) -> None:
    came = sent_by(api)
    assert (came.state, came.reason, came.retry, came.retry_after_s) == (state, reason, retry, wait_s)
    assert len(api.asked) == 1


@pytest.mark.parametrize(
    "url",
    [
        "", "http://qyapi.weixin.qq.com/x", "https://qyapi.weixin.qq.com.evil.example/x", "https://evilqq.com/x",
        "https://qyapi.weixin.qq.com@evil.example/x", "https://qyapi.weixin.qq.com:8443/x", "//qq.com/x",
        "https://evil.example/?.qq.com", "https://evil.example#.qq.com", "https://evil.example\\.qq.com/x",
        "https://evil.example\t.qq.com/x", "https://evil.example。qq.com/x", "https://[::1",
    ],
)  # fmt: skip
def test_an_answer_never_goes_to_a_strangers_host(url: str) -> None:
    api = answered(200, {"errcode": 0})
    assert sent_by(api, url) == Delivery("not-sent", reason="delivery-refused")
    assert api.asked == []


def test_api_url_stands_in_for_the_platform() -> None:
    who = account(credentials=SECRETS | {"api_url": "http://127.0.0.1:9/wc/"})
    for url in (URL, "http://127.0.0.1:9/wc/cgi-bin/aibot/response?response_code=TIDE"):
        api = answered(200, {"errcode": 0})
        assert sent_by(api, url, who).state == "sent"
        assert api.asked[0][2] == "http://127.0.0.1:9/wc/cgi-bin/aibot/response?response_code=TIDE"
    assert sent_by(answered(200), "http://127.0.0.1:10/x", who).state == "not-sent"


def test_switches_refuse_without_a_request() -> None:
    api = answered(200, {"errcode": 0})
    assert sent_by(api, switches=Switches(read_only=True)) == Delivery("not-sent", reason="read-only-mode")
    assert sent_by(api, switches=Switches(safe_mode=True)) == Delivery("not-sent", reason="safe-mode")
    assert api.asked == []


def test_pings_are_defused_and_limits_are_those_of_the_document() -> None:
    assert CHANNEL.render("<@all> **a** 1 < 2") == "< @all> **a** 1 < 2"
    limits = CHANNEL.limits
    assert (limits.text_units, limits.unit, limits.replies, limits.reply_window_s) == (20_480, "utf8", 1, 3600)


PLACE = "https://ww-aibot-img-1258476243.cos.ap-guangzhou.myqcloud.com/a?sign=b"
CIPHER, PLAIN = base64.b64decode(MEDIA["cipher_b64"]), base64.b64decode(MEDIA["plain_b64"])


def test_media_vector_is_opened_by_its_own_key_or_the_accounts() -> None:
    key = MEDIA["secrets"]["aeskey"]
    api = answered(200, CIPHER)
    assert fetched(api, {"url": PLACE, "aeskey": key}) == PLAIN
    assert [asked[:3] for asked in api.asked] == [("fetch", "GET", PLACE)]
    assert fetched(answered(200, CIPHER), {"url": PLACE, "aeskey": key + "="}, len(PLAIN)) == PLAIN
    assert fetched(answered(200, CIPHER), {"url": PLACE}, credentials={"encoding_aes_key": key}) == PLAIN


@pytest.mark.parametrize(
    ("raw", "ref", "most"),
    [
        (CIPHER[:-1], {}, 1000), (b"", {}, 1000), (CIPHER[:-16], {}, 1000), (CIPHER, {}, len(PLAIN) - 1),
        (CIPHER, {"aeskey": OTHER_KEY}, 1000), (CIPHER, {"aeskey": "x"}, 1000),
    ],
)  # fmt: skip
def test_media_that_do_not_open_are_refused(raw: bytes, ref: dict[str, str], most: int) -> None:
    with pytest.raises(Refused):
        fetched(answered(200, raw), {"url": PLACE, "aeskey": MEDIA["secrets"]["aeskey"]} | ref, most)


@pytest.mark.parametrize(
    "url", ["", "http" + PLACE[5:], "https://mine-1.cos.ap-guangzhou.myqcloud.com/a", "https://evil.example/a"]
)
def test_media_come_from_wecoms_hosts_only(url: str) -> None:
    api = answered(200, CIPHER)
    with pytest.raises(Refused):
        fetched(api, {"url": url, "aeskey": MEDIA["secrets"]["aeskey"]})
    assert api.asked == []


def test_nothing_else_can_be_asked() -> None:
    api = answered(200)
    message = normalised()
    found = ended(CHANNEL.lookup(Lookup(via="platform", chat_id="wr1", message_id="m0"), message, account(), api))
    assert (found.message_id, found.unavailable_reason) == ("m0", "not-delivered")
    who = ended(CHANNEL.identity(account(), api))
    assert (who.self_ids, who.name) == (("aibTIDE",), "小助")
    ended(CHANNEL.acknowledge(CHANNEL.target(message), "working", account(), api, Switches()))
    assert ended(CHANNEL.verify_source(message, account(), api))
    assert api.asked == []
