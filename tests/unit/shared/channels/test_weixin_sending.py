"""Sending to Weixin, its media, and the typing sign."""

import asyncio
import base64
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from weixin_support import BOT, QUOTED_ID, USER, account, normalised, quote

from shared.channels.port import AckState, Delivery, Json, Part, PlatformResponse, Switches, Target
from shared.channels.weixin import CHANNEL
from shared.errors import EffectUnknown, MillstreamError, Refused, Transient
from shared.message import Attachment
from tests.contracts.golden import FIXTURES, load
from workers.ops.scenario.wires.weixin import WIRE


class Recorder:
    """Stands for the platform: gives its answers in turn and writes down what it was asked."""

    def __init__(self, *answers: PlatformResponse | MillstreamError) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str, str, dict[str, str], Any]] = []

    async def request(
        self, call: str, method: str, url: str, *, headers: Mapping[str, str] | None = None, json: Json = None, **_: Any
    ) -> PlatformResponse:
        self.asked.append((call, method, url, dict(headers or {}), json))
        answer = self.answers.pop(0)
        if isinstance(answer, MillstreamError):
            raise answer
        return answer


def answer(body: object, status: int = 200, **headers: str) -> PlatformResponse:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return PlatformResponse(status, headers, data)


FREE = Switches()


def sent_with(api: Recorder, nonce: str = "01J-1:0", switches: Switches = FREE) -> Delivery:
    where = CHANNEL.target(normalised())
    return asyncio.run(CHANNEL.send(where, Part("text", text="好的\ud800"), nonce, account(), api, switches))


def test_a_send_is_one_request_with_the_context_token_and_a_client_id_that_stays() -> None:
    api = Recorder(answer(b'{"message_id": 18446744073709551615}'), answer({}), answer({}))
    assert sent_with(api) == Delivery("sent", ("18446744073709551615",), "sent")
    assert sent_with(api) == Delivery("sent", (), "sent")
    sent_with(api, "01J-1:1")
    call, method, url, headers, body = api.asked[0]
    assert (call, method, url) == ("send", "POST", "https://region.example/ilink/bot/sendmessage")
    number = base64.b64decode(headers.pop("x-wechat-uin")).decode()
    assert 0 <= int(number) < 2**32
    assert headers == {
        "authorizationtype": "ilink_bot_token",
        "authorization": "Bearer invented-token",
        "ilink-app-id": "bot",
        "ilink-app-clientversion": "132105",
    }
    client = body["msg"].pop("client_id")
    assert body == {
        "msg": {
            "from_user_id": "",
            "to_user_id": USER,
            "message_type": 2,
            "message_state": 2,
            "item_list": [{"type": 1, "text_item": {"text": "好的\ufffd"}}],
            "context_token": "ctx",
        },
        "base_info": {"channel_version": "2.4.9", "bot_agent": "Millstream/0.1"},
    }
    assert api.asked[1][4]["msg"]["client_id"] == client
    assert api.asked[2][4]["msg"]["client_id"] != client


REFUSED = Delivery("not-sent", reason="delivery-refused")
LIMITED = Delivery("not-sent", reason="rate-limited", retry=True)
UNKNOWN = Delivery("unknown", reason="delivery-unknown")


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        (answer({"ret": -14, "errmsg": "session timeout"}), REFUSED),
        (answer({"errcode": -14}), REFUSED),
        (answer({"ret": 0, "errcode": -14}), REFUSED),
        (answer({"ret": -2, "errmsg": "prepare failed"}), REFUSED),
        (answer({"ret": -2, "errmsg": "Rate limited"}), LIMITED),
        (answer({"ret": "x"}), UNKNOWN),
        (answer(b"<html>"), UNKNOWN),
        (answer([]), UNKNOWN),
        (answer({"ret": 0}), Delivery("sent", reason="sent")),
        (answer({}, 429, **{"Retry-After": "7"}), Delivery("not-sent", (), "rate-limited", True, 7.0)),
        (answer({}, 403), REFUSED),
        (answer({}, 502), UNKNOWN),
        (Transient("no connection"), Delivery("not-sent", reason="not-connected", retry=True)),
        (EffectUnknown("time out"), UNKNOWN),
    ],
)
def test_what_an_answer_means(given: PlatformResponse | MillstreamError, outcome: Delivery) -> None:
    assert sent_with(Recorder(given)) == outcome


@pytest.mark.parametrize(
    ("switches", "reason"), [(Switches(True), "read-only-mode"), (Switches(safe_mode=True), "safe-mode")]
)
def test_r1_switches_refuse_without_a_request(switches: Switches, reason: str) -> None:
    api = Recorder()
    assert sent_with(api, switches=switches) == Delivery("not-sent", reason=reason)
    asyncio.run(CHANNEL.acknowledge(CHANNEL.target(normalised()), "working", account(ack="typing"), api, switches))
    assert api.asked == []


def test_markdown_becomes_visible_text() -> None:
    api = Recorder(answer({}))
    part = Part("text", text=CHANNEL.render("**好** [图](https://a.example)"))
    asyncio.run(CHANNEL.send(CHANNEL.target(normalised()), part, "n", account(), api, Switches()))
    assert "好 图 (https://a.example)" in repr(api.asked)
    assert (CHANNEL.limits.replies, CHANNEL.limits.reply_window_s) == (10, 86_400)


def test_typing_takes_a_ticket_once_and_another_after_it_was_refused() -> None:
    where = CHANNEL.target(normalised(from_user_id="o9xxTyping@im.wechat"))
    ticket = answer({"ret": 0, "typing_ticket": "dGlja2V0"})
    api = Recorder(ticket, answer({}), answer({"ret": -2}), ticket, answer({}), answer({}))
    states: tuple[AckState, ...] = ("working", "working", "working", "done")
    for state in states:
        asyncio.run(CHANNEL.acknowledge(where, state, account(), api, Switches()))
    methods = [url.rpartition("/")[2] for _, _, url, _, _ in api.asked]
    assert methods == ["getconfig", "sendtyping", "sendtyping", "getconfig", "sendtyping", "sendtyping"]
    config, last = api.asked[0][4], api.asked[-1][4]
    assert (config["ilink_user_id"], config["context_token"]) == ("o9xxTyping@im.wechat", "ctx")
    del last["base_info"]
    assert last == {"ilink_user_id": "o9xxTyping@im.wechat", "typing_ticket": "dGlja2V0", "status": 2}
    group = Target("4477@chatroom", "group")
    for quiet, place in ((account(ack="none"), where), (account(), group)):
        asyncio.run(CHANNEL.acknowledge(place, "working", quiet, api, Switches()))
    assert len(api.asked) == 6


VECTOR = load(FIXTURES / "_vectors" / "weixin_media.json")
CIPHER = base64.b64decode(VECTOR["cipher_b64"])
URL = "https://novac2c.cdn.weixin.qq.com/c2c/download?encrypted_query_param=x"


def file_of(kind: str = "file_item", url: str = URL, **more: Any) -> Attachment:
    media = {"full_url": url, "aes_key": VECTOR["media.aes_key"]} | more.pop("media", {})
    [found] = normalised({kind: {"media": media} | more}).attachments
    return found


def fetched(attachment: Attachment, body: bytes = CIPHER, most: int = 1000) -> tuple[bytes, Recorder]:
    api = Recorder(answer(body))
    return asyncio.run(CHANNEL.fetch(attachment, account(), api, most)), api


@pytest.mark.parametrize(
    "made",
    [
        lambda: file_of(),
        lambda: file_of("voice_item", media={"aes_key": VECTOR["also_seen_media.aes_key"]}),
        lambda: file_of("image_item", aeskey=VECTOR["aeskey_hex"], media={"aes_key": "odd"}),
        lambda: file_of(media={"full_url": "", "encrypt_query_param": "a+b"}),
        lambda: file_of(url="https://region.example/c2c/1"),
    ],
)
def test_media_are_deciphered_with_either_form_of_the_key(made: Callable[[], Attachment]) -> None:
    attachment = made()
    data, api = fetched(attachment)
    assert data == base64.b64decode(VECTOR["plain_b64"])
    [(call, method, url, headers, _)] = api.asked
    assert (call, method, headers) == ("fetch", "GET", {})
    assert url == attachment.ref.get("url", f"{URL[:-1]}a%2Bb")


@pytest.mark.parametrize(
    ("attachment", "body", "most"),
    [
        (file_of(media={"aes_key": "AAAAAAAAAAAAAAAAAAAAAA=="}), CIPHER, 1000),
        (file_of(), CIPHER[:-16] + bytes(16), 1000),
        (file_of(), CIPHER[:-1], 1000),
        (file_of(), b"", 1000),
        (file_of(), CIPHER, 51),
        (file_of(len="1001"), CIPHER, 1000),
        (file_of(media={"aes_key": "bm90IGEga2V5"}), CIPHER, 1000),
        (file_of(url="http://novac2c.cdn.weixin.qq.com/c2c/1"), CIPHER, 1000),
        (file_of(url="https://novac2c.cdn.weixin.qq.com.example/1"), CIPHER, 1000),
        (file_of(url="https://user@127.0.0.1/1"), CIPHER, 1000),
        (file_of(url="https://[/1"), CIPHER, 1000),
        (file_of(url="c2c/1"), CIPHER, 1000),
    ],
    ids=[
        "key",
        "padding",
        "length",
        "empty",
        "large",
        "said-large",
        "no-key",
        "http",
        "host",
        "address",
        "no-url",
        "no-host",
    ],
)
def test_other_keys_other_bytes_other_hosts_are_refused(attachment: Attachment, body: bytes, most: int) -> None:
    with pytest.raises(Refused):
        fetched(attachment, body, most)


def test_the_platform_is_not_asked_for_messages_or_for_the_bot() -> None:
    message = quote(message_item={"type": 0, "msg_id": QUOTED_ID})
    assert message.reply_to is not None
    assert message.reply_to.lookup is not None
    api = Recorder()
    found = asyncio.run(CHANNEL.lookup(message.reply_to.lookup, message, account(), api))
    assert (found.message_id, found.unavailable_reason) == (QUOTED_ID, "not-delivered")
    assert asyncio.run(CHANNEL.identity(account(), api)).self_ids == (BOT,)
    assert asyncio.run(CHANNEL.verify_source(message, account(), api))
    assert api.asked == []


def test_the_scenarios_wire_speaks_as_the_channel_reads() -> None:
    api = Recorder(answer({}))
    sent_with(api)
    _, _, url, _, body = api.asked[0]
    row = WIRE.row("wx", url, body)
    assert (row.text, row.chat, row.thread, row.reply_to) == ("好的\ufffd", USER, None, None)
    success = WIRE.success(url, body, 900_001, 1_788_281_382_163)
    assert sent_with(Recorder(answer(success))).ids == (str((1_788_281_382_163 << 22) + 900_001),)
    assert sent_with(Recorder(answer(WIRE.refusal(429, None)))) == LIMITED
    assert sent_with(Recorder(answer(WIRE.refusal(400, None)))) == REFUSED
    taken = (success, {}, {"ret": 0}, {"ret": -14}, {"errcode": -2}, [])
    assert [WIRE.took(each) for each in taken] == [True, True, True, False, False, False]
