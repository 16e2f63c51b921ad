"""DingTalk: golden events and vectors, what lets an event in, what is quoted, what is sent and what comes of it."""

import asyncio
import json
import math
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from shared.channels.dingtalk import CHANNEL
from shared.channels.port import Delivery, HookRequest, Json, Part, PlatformResponse, Switches, Target
from shared.errors import EffectUnknown, Malformed, MillstreamError, Refused, Transient, Unauthorised
from shared.message import Attachment, Message, ReplyReference
from shared.settings import AccountSettings
from tests.contracts.golden import FIXTURES, account_of, case_id, cases, differences, load, reference_differences
from workers.ops.scenario.wires.dingtalk import WIRE
from workers.quotes.policy import unresolved

FILES = cases("dingtalk")
T = TypeVar("T")
BOT, ANNA = "$:LWCP_v1:$bot", "$:LWCP_v1:$anna"
HOOK = "https://oapi.dingtalk.com/robot/sendBySession?session=tide"
FAR, PAST = "99999999999999", "1700000000000"
SIGNED = load(FIXTURES / "_vectors" / "dingtalk_http_sign.json")
STAMP_MS = int(SIGNED["request"]["headers"]["timestamp"])
SECRET = SIGNED["secrets"]["app_secret"]
TOKEN = {"accessToken": "at-1", "expireIn": 7200}


def account(**credentials: str) -> AccountSettings:
    known = {"app_key": "dingkey", "app_secret": SECRET} | credentials
    return AccountSettings.model_validate({"id": "dt", "channel": "dingtalk", "credentials": known})


def body(**more: Any) -> dict[str, Any]:
    base = {
        "msgId": "m1", "conversationId": "cid1", "conversationType": "1", "senderId": ANNA, "chatbotUserId": BOT,
        "createAt": 1793581200441, "msgtype": "text", "text": {"content": "hi"},
    }  # fmt: skip
    return {key: value for key, value in (base | more).items() if value is not None}


def normalised(**more: Any) -> Message:
    [found] = CHANNEL.normalise(body(**more), account())
    return found


def quote(replied: Any, **more: Any) -> ReplyReference:
    found = normalised(text={"content": "hi", "isReplyMsg": True, "repliedMsg": replied}, **more).reply_to
    assert found is not None
    return found


class Recorder:
    """The platform: gives its scripted answers in order, or raises them, and writes down what it was asked."""

    def __init__(self, *answers: PlatformResponse | MillstreamError) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str, str, Json, Any]] = []

    async def request(
        self, call: str, method: str, url: str, *, json: Json = None, headers: Any = None, **_: Any
    ) -> PlatformResponse:
        self.asked.append((call, method, url, json, headers))
        answer = self.answers.pop(0)
        if isinstance(answer, MillstreamError):
            raise answer
        return answer


def says(status: int, value: Any = None, **headers: str) -> PlatformResponse:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return PlatformResponse(status, headers, raw)


def ended(work: Awaitable[T]) -> T:
    async def wait() -> T:
        return await work

    return asyncio.run(wait())


def sent_by(
    api: Recorder, who: AccountSettings, kind: Any = "group", switches: Switches | None = None, **route: str
) -> Delivery:
    part = Part("text", text="# Tide\n**12:40**")
    return ended(CHANNEL.send(Target("cid1", kind, None, "m1", route), part, "out-0", who, api, switches or Switches()))


def by_hook(api: Recorder, url: str = HOOK, until: str = FAR, **credentials: str) -> Delivery:
    return sent_by(api, account(**credentials), webhook=url, until=until)


@pytest.mark.parametrize("path", FILES, ids=case_id)
def test_q61_q62_event_is_normalised_as_the_fixture_says(path: Path) -> None:
    fixture = load(path)
    [message] = CHANNEL.normalise(fixture["event"], account_of(fixture))
    # That the kind cannot be read is known before the index is asked; the golden event says so only afterwards.
    assert differences(message, fixture["expect"]) == {}
    assert Message.model_validate_json(message.model_dump_json(exclude_defaults=True)) == message
    data = json.loads(fixture["event"]["data"])
    assert CHANNEL.normalise(data, account_of(fixture)) == [message]
    assert message.sent_at_ms == data["createAt"]
    assert CHANNEL.target(message).route["webhook"] == data["sessionWebhook"]
    if "lookup" in fixture:
        assert message.reply_to is not None
        assert message.reply_to.lookup is not None
        assert message.reply_to.lookup.via == "index"
        assert reference_differences(unresolved(message.reply_to), fixture["lookup"]["expect_reply_to"]) == {}


def test_c17_a_redelivered_frame_has_the_same_key() -> None:
    assert len(FILES) == 19
    fixture = load(FIXTURES / "dingtalk" / "duplicate_delivery.json")
    [first] = CHANNEL.normalise(fixture["event"], account_of(fixture))
    for copy in (fixture["redelivery"], *fixture["redelivery_more"]):
        [second] = CHANNEL.normalise(copy["event"], account_of(fixture))
        assert (second.keys, second.identity) == (first.keys, first.identity)


def test_frames_that_hold_no_message_give_none() -> None:
    vector = load(FIXTURES / "_vectors" / "dingtalk_stream_ack.json")
    assert len(CHANNEL.normalise(vector["frame_in"], account())) == 1
    for frame in vector["system_frames"]:
        assert CHANNEL.normalise(frame["in"], account()) == []
    card = {"type": "CALLBACK", "headers": {"topic": "/v1.0/card/instances/callback"}, "data": "{}"}
    assert CHANNEL.normalise(card, account()) == []


def hook(**headers: str) -> HookRequest:
    request = SIGNED["request"]
    return HookRequest("POST", {**request["headers"], **headers}, {}, request["body"].encode())


def test_signature_vector_is_let_in_for_one_hour_and_answered() -> None:
    for now_ms in (STAMP_MS, STAMP_MS + 3_600_000, STAMP_MS - 3_600_000):
        CHANNEL.verify(hook(), account(), now_ms)
    for now_ms in (STAMP_MS + 3_600_001, STAMP_MS - 3_600_001):
        with pytest.raises(Unauthorised):
            CHANNEL.verify(hook(), account(), now_ms)
    assert CHANNEL.handshake(hook(), account()) is None
    [message] = CHANNEL.normalise(json.loads(SIGNED["request"]["body"]), account())
    assert (message.text, message.addressed) == ("重新学习一下", True)
    assert CHANNEL.accepted.status == SIGNED["expect_response"]["status"]
    assert json.loads(CHANNEL.accepted.body) == SIGNED["expect_response"]["json"]


@pytest.mark.parametrize(
    "headers",
    [
        {"sign": ""},
        {"sign": SIGNED["request"]["headers"]["sign"].lower()},
        {"sign": "\ud800é"},
        {"timestamp": str(STAMP_MS + 1)},
        {"timestamp": ""},
        {"timestamp": f" {STAMP_MS}"},
        {"timestamp": "１７９３５８００００１２３"},
    ],
)
def test_tampered_signature_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(Unauthorised):
        CHANNEL.verify(hook(**headers), account(), STAMP_MS)


def test_without_a_secret_only_an_insecure_account_takes_events() -> None:
    bare = AccountSettings.model_validate({"id": "dt", "channel": "dingtalk"})
    with pytest.raises(Unauthorised):
        CHANNEL.verify(hook(), bare, STAMP_MS)
    CHANNEL.verify(hook(sign=""), bare.model_copy(update={"insecure": True}), STAMP_MS)


@pytest.mark.parametrize(
    "written", [None, {"text": "[Interactive Card Message]"}, '{"text": "[INTERACTIVE card message]"}']
)
def test_q63_q64_q65_the_bots_card_is_looked_up_by_key_then_id_then_time(written: Any) -> None:
    card = {"msgType": "interactiveCard", "msgId": "m0", "senderId": BOT, "createdAt": 1793581160, "content": written}
    found = quote(card, originalProcessQueryKey="pqk1")
    assert (found.content, found.attachments, found.explicit_text) == (None, (), False)
    assert found.lookup is not None
    assert (found.lookup.via, found.lookup.chat_id, found.lookup.keys) == ("index", "cid1", ("pqk1", "m0"))
    assert found.lookup.quoted_at_ms == 1_793_581_160_000  # below 1e10 it is seconds
    gone = unresolved(found)
    assert (gone.unavailable_reason, gone.content, gone.author_id) == ("not-delivered", None, BOT)


def test_quotes_of_other_kinds() -> None:
    record = quote({"msgType": "chatRecord", "msgId": "m0", "content": {"title": "Harbour", "summary": "anna: 12:40"}})
    assert (record.content, record.explicit_text) == ("Harbour\nanna: 12:40", True)
    file = quote(json.dumps({"msgType": "file", "msgId": "m0", "content": {"fileName": "a.pdf", "downloadCode": "c"}}))
    assert [(each.kind, each.name) for each in file.attachments] == [("file", "a.pdf")]
    assert (file.content, file.explicit_text, file.needs_lookup) == (None, False, False)
    assert quote({"msgType": "text", "msgId": "m0", "content": "bare words"}).content == "bare words"
    assert quote({}).unavailable_reason == "not-delivered"
    assert normalised(text={"content": "hi", "isReplyMsg": "true", "repliedMsg": {}}).reply_to is None


def test_other_kinds_of_messages_and_unknown_own_ids() -> None:
    picture = normalised(msgtype="picture", text=None, content={"downloadCode": "c1"})
    assert (picture.attachments, picture.text) == ((Attachment(kind="image", ref={"code": "c1"}),), "")
    voice = normalised(msgtype="audio", text=None, content={"downloadCode": "c1", "recognition": "berth seven"})
    assert (voice.text, voice.attachments[0].transcript) == ("berth seven", "berth seven")
    assert normalised(msgtype="unknownMsgType", text=None).attachments == (Attachment(kind="other"),)
    group = normalised(chatbotUserId=None, conversationType="2", atUsers=[{"dingtalkId": "x"}])
    assert (group.self_known, group.mentions_bot, group.addressed) == (False, None, False)


WRONG = [None, 0, True, 2**70, math.nan, "", "\ud800", "{", "[" * 100, [], [[None]], {}, {"content": {"text": 5}}]


@pytest.mark.parametrize("value", WRONG, ids=range(len(WRONG)))
def test_c21_wrong_types_read_as_absent_or_are_malformed(value: Any) -> None:
    fields = {
        "msgId",
        "conversationId",
        "senderId",
        "text",
        "content",
        "atUsers",
        "createAt",
        "data",
        "msgtype",
        "headers",
    }
    quoted = {"msgType": "richText", "msgId": "m", "createdAt": 1, "content": {"richText": [{}]}}
    reply = {"isReplyMsg": True, "content": "x", "repliedMsg": quoted}
    events = [value, {"data": value}, {"type": value, "headers": {"topic": value}, "data": "{}"}]
    events += [body() | {name: value} for name in fields]
    events += [
        body(text=reply | {"repliedMsg": quoted | {name: value}}) for name in (*quoted, "senderId", "senderNick")
    ]
    events += [body(msgtype="richText", text=None, content=reply | {"richText": value})]
    for event in events:
        try:
            found = CHANNEL.normalise(event, account())
        except Malformed:
            continue
        for message in found:
            message.model_dump_json().encode()


def test_reply_goes_to_the_session_webhook() -> None:
    api = Recorder(says(200, {"errcode": 0, "errmsg": "ok"}))
    assert by_hook(api) == Delivery("sent", reason="sent")
    [(call, method, url, asked, headers)] = api.asked
    assert (call, method, url, headers) == ("send", "POST", HOOK, None)
    assert asked == {"msgtype": "markdown", "markdown": {"title": "Tide", "text": "# Tide\n**12:40**"}}
    assert WIRE.row("dt", url, asked).text == "# Tide\n**12:40**"
    moved = Recorder(says(200, {"errcode": 0}))
    by_hook(moved, api_url="http://127.0.0.1:9/x/")
    assert moved.asked[0][2] == "http://127.0.0.1:9/x/robot/sendBySession?session=tide"


@pytest.mark.parametrize(
    ("url", "until"),
    [
        (HOOK, PAST),
        (HOOK, ""),
        ("http://oapi.dingtalk.com/robot/sendBySession", FAR),
        ("https://oapi.dingtalk.com.evil.example/x", FAR),
        ("https://evildingtalk.com/x", FAR),
        ("https://a@oapi.dingtalk.com/x", FAR),
        ("https://evil.example\\.dingtalk.com/x", FAR),
        ("https://oapi.dingtalk.com:8443/x", FAR),
    ],
)
def test_without_a_valid_webhook_the_robot_api_sends_to_the_group(url: str, until: str) -> None:
    who = f"group {url} {until}"
    api = Recorder(says(200, TOKEN), says(200, {"processQueryKey": "pqk1", "carrierId": "car1"}))
    assert by_hook(api, url, until, app_key=who) == Delivery("sent", ids=("pqk1", "car1"), reason="sent")
    login, sending = api.asked
    assert login[:4] == (
        "login", "POST", "https://api.dingtalk.com/v1.0/oauth2/accessToken", {"appKey": who, "appSecret": SECRET},
    )  # fmt: skip
    call, method, where, asked, headers = sending
    assert (call, method, where) == ("send", "POST", "https://api.dingtalk.com/v1.0/robot/groupMessages/send")
    assert headers == {"x-acs-dingtalk-access-token": "at-1"}
    assert (asked["robotCode"], asked["openConversationId"], asked["msgKey"]) == (who, "cid1", "sampleMarkdown")
    assert json.loads(asked["msgParam"]) == {"title": "Tide", "text": "# Tide\n**12:40**"}
    row = WIRE.row("dt", where, asked)
    assert (row.text, row.chat) == ("# Tide\n**12:40**", "cid1")


def test_a_person_is_reached_by_the_staff_id_alone() -> None:
    api = Recorder(says(200, TOKEN), says(200, {"processQueryKey": "pqk1"}))
    assert sent_by(api, account(app_key="one"), "private", user="staff1").ids == ("pqk1",)
    assert api.asked[1][2].endswith("/v1.0/robot/oToMessages/batchSend")
    assert api.asked[1][3]["userIds"] == ["staff1"]
    api = Recorder()
    assert sent_by(api, account(), "private") == Delivery("not-sent", reason="delivery-refused")
    assert api.asked == []


@pytest.mark.parametrize(
    ("answer", "state", "retry"),
    [
        (says(429, b"", **{"Retry-After": "7"}), "not-sent", True),
        (says(200, {"errcode": 130101}), "not-sent", True),
        (says(200, {"errcode": 300001}), "not-sent", False),
        (says(403, b"{"), "not-sent", False),
        (says(200, {"errcode": -1}), "unknown", False),
        (says(502, b""), "unknown", False),
        (says(200, b"<html>"), "unknown", False),
        (says(200, []), "unknown", False),
        (EffectUnknown("time out"), "unknown", False),
        (Transient("not connected"), "not-sent", True),
    ],
)
def test_what_comes_of_a_webhook_send(answer: PlatformResponse | MillstreamError, state: str, retry: bool) -> None:
    api = Recorder(answer)
    found = by_hook(api)
    assert (found.state, found.retry, len(api.asked)) == (state, retry, 1)
    assert found.retry_after_s == (7.0 if isinstance(answer, PlatformResponse) and answer.status == 429 else None)


@pytest.mark.parametrize(
    ("answer", "state", "retry"),
    [
        (says(429, {}), "not-sent", True),
        (says(403, {"code": "Forbidden.AccessDenied.QpsLimitForApi"}), "not-sent", True),
        (says(400, {"code": "InvalidAuthentication"}), "not-sent", True),
        (says(401, b""), "not-sent", True),
        (says(403, {"code": "Forbidden.AccessDenied.AccessTokenPermissionDenied"}), "not-sent", False),
        (says(200, {"processQueryKey": "p", "flowControlledStaffIdList": ["s"]}), "not-sent", True),
        (says(200, {"processQueryKey": "p", "invalidStaffIdList": ["s"]}), "not-sent", False),
        (says(500, {}), "unknown", False),
        (says(200, {}), "unknown", False),
        (says(200, b"<html>"), "unknown", False),
        (EffectUnknown("time out"), "unknown", False),
        (Transient("not connected"), "not-sent", True),
    ],
)
def test_what_comes_of_a_robot_send(
    answer: PlatformResponse | MillstreamError, state: str, retry: bool, request: pytest.FixtureRequest
) -> None:
    who = account(app_key=request.node.name)
    found = sent_by(Recorder(says(200, TOKEN), answer), who)
    assert (found.state, found.retry) == (state, retry)
    # A refused token is bought again, any other is kept.
    later = Recorder(says(200, TOKEN), says(200, {"processQueryKey": "p"}))
    if found.reason != "token-refused":
        later.answers.pop(0)
    assert sent_by(later, who).state == "sent"


@pytest.mark.parametrize(
    ("answer", "retry"),
    [
        (says(400, {"code": "invalidClientIdOrSecret"}), False),
        (says(200, {}), False),
        (says(503, {}), True),
        (EffectUnknown("time out"), True),
    ],
)
def test_a_failed_login_never_leaves_a_send_in_doubt(answer: PlatformResponse | MillstreamError, retry: bool) -> None:
    api = Recorder(answer)
    found = sent_by(api, account(app_key="never"))
    assert (found.state, found.retry, [each[0] for each in api.asked]) == ("not-sent", retry, ["login"])


def test_read_only_refuses_without_a_request() -> None:
    api = Recorder()
    assert (
        sent_by(api, account(), switches=Switches(read_only=True), webhook=HOOK, until=FAR).reason == "read-only-mode"
    )
    assert sent_by(api, account(), switches=Switches(safe_mode=True), webhook=HOOK, until=FAR).reason == "safe-mode"
    assert api.asked == []


def test_pings_of_everyone_are_defused_and_a_full_part_fits() -> None:
    assert CHANNEL.render("@all @所有人 @ALL @allan a@b") == "@ all @ 所有人 @ ALL @allan a@b"
    api = Recorder(says(200, TOKEN), says(200, {"processQueryKey": "p"}))
    part = Part("text", text='"' * CHANNEL.limits.text_units)
    ended(CHANNEL.send(Target("c", "group"), part, "n", account(app_key="full"), api, Switches()))
    assert len(api.asked[1][3]["msgParam"].encode()) <= 15_000


def test_a_file_is_fetched_by_its_code_from_dingtalks_hosts_only() -> None:
    def fetched(place: str, who: str, most: int = 9) -> tuple[bytes, Recorder]:
        api = Recorder(says(200, TOKEN), says(200, {"downloadUrl": place}), says(200, b"bytes"))
        file = Attachment(kind="file", ref={"code": "c1"})
        return ended(CHANNEL.fetch(file, account(app_key=who), api, most)), api

    found, api = fetched("https://bucket.oss-cn-zhangjiakou.aliyuncs.com/f?sig=1", "f1")
    assert found == b"bytes"
    assert api.asked[1][2].endswith("/v1.0/robot/messageFiles/download")
    assert api.asked[1][3] == {"downloadCode": "c1", "robotCode": "f1"}
    assert api.asked[2][4] is None  # the access token goes nowhere else
    for place in ("http://down.dingtalk.com/f", "https://evil.example/f", "https://169.254.169.254/", ""):
        with pytest.raises(Refused):
            fetched(place, f"f2{place}")
    with pytest.raises(Refused):
        fetched("https://down.dingtalk.com/f", "f3", most=4)
