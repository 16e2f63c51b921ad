"""WhatsApp, both forms: golden events, signatures, and what every answer to a send means."""

import asyncio
import hashlib
import hmac
import importlib.util
import json
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.channels import bridge
from shared.channels.port import Delivery, HookRequest, Part, PlatformResponse, Switches, Target
from shared.channels.whatsapp import CHANNEL
from shared.channels.whatsapp.wamid import stanza_id
from shared.errors import EffectUnknown, Malformed, MillstreamError, Refused, Transient, Unauthorised
from shared.message import Attachment, Message
from shared.settings import AccountSettings
from tests.contracts.golden import FIXTURES, account_of, case_id, cases, differences, load, reference_differences
from workers.ops.scenario.wires.whatsapp import WIRE
from workers.quotes.policy import unresolved

T = TypeVar("T")
ROOT = Path(__file__).parents[4]
VECTORS = json.loads((FIXTURES / "_vectors" / "west.json").read_text(encoding="utf-8"))["whatsapp_cloud"]
CREDENTIALS = {"token": "t-invented", "phone_number_id": "100000000000321", "secret": "tide", "verify_token": "ebb"}
CLOUD = Target("12025550143", "private", None, "wamid.Q")
WEB = Target("88200000000143@lid", "private", None, "3A01")
WAMID = "wamid.HBgLMTIwMjU1NTAxNDMVAgARGBIwMDAwMDAwMDAyQjdGMDAxMjAA"


async def _awaited(call: Awaitable[T]) -> T:
    return await call


def run(call: Awaitable[T]) -> T:
    return asyncio.run(_awaited(call))


def account(**more: Any) -> AccountSettings:
    return AccountSettings.model_validate({"id": "wa", "channel": "whatsapp", "credentials": CREDENTIALS} | more)


def messages(fixture: dict[str, Any], event: Any = None) -> list[Message]:
    # A fixture's `bot.name` is the account's name here: quotes of the bot carry it.
    who = account_of(fixture, self_name=fixture["bot"]["name"])
    return CHANNEL.normalise(fixture["event"] if event is None else event, who)


def named(name: str) -> dict[str, Any]:
    return load(FIXTURES / "whatsapp" / f"{name}.json")


class Recorder:
    """The platform: gives its answers in order and writes down what it was asked."""

    def __init__(self, *answers: PlatformResponse | MillstreamError) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, Any]] = []

    async def request(self, call: Any, method: str, url: str, **more: Any) -> PlatformResponse:
        self.asked.append({"call": call, "method": method, "url": url, **more})
        answer = self.answers.pop(0)
        if isinstance(answer, MillstreamError):
            raise answer
        return answer


def answered(status: int, body: Any, headers: Mapping[str, str] | None = None) -> PlatformResponse:
    return PlatformResponse(status, headers or {}, body if isinstance(body, bytes) else json.dumps(body).encode())


def send(
    api: Recorder, to: Target = CLOUD, text: str = "hi", switches: Switches | None = None, **more: Any
) -> Delivery:
    switches = switches or Switches()
    return run(CHANNEL.send(to, Part("text", text), "n-1", account(**more), api, switches))


@pytest.mark.parametrize("path", cases("whatsapp"), ids=case_id)
def test_c10_c12_q45_golden_events(path: Path) -> None:
    fixture = load(path)
    found = messages(fixture)
    wanted = [each for each in (fixture["expect"], *fixture.get("expect_more", ())) if each["message_id"] is not None]
    assert len(found) == len(wanted)
    assert [differences(*pair) for pair in zip(found, wanted, strict=True)] == [{}] * len(wanted)
    lookup = fixture.get("lookup")
    if lookup is not None:
        quote = found[0].reply_to
        assert quote is not None
        assert quote.lookup is not None
        assert (quote.lookup.via, quote.lookup.chat_id) == ("index", found[0].chat_id)
        if lookup["response"] is None:
            assert reference_differences(unresolved(quote), lookup["expect_reply_to"]) == {}


def test_a_copy_after_a_reconnect_has_the_same_key_under_either_jid() -> None:
    fixture = named("web_duplicate_notify_then_append")
    [first], [second] = messages(fixture), messages(fixture, fixture["redelivery"]["event"])
    swapped = json.loads(json.dumps(fixture["event"]))
    key = swapped["messages"][0]["key"]
    key["remoteJid"], key["remoteJidAlt"] = key["remoteJidAlt"], key["remoteJid"]
    [third] = messages(fixture, swapped)
    assert (first.keys, first.identity) == (second.keys, second.identity) == (third.keys, third.identity)


def test_c11_a_quote_is_looked_for_by_its_stanza_id_too_and_a_send_names_both() -> None:
    [found] = messages(named("cloud_quote_bot_message"))
    assert found.reply_to is not None
    assert found.reply_to.lookup is not None
    assert found.reply_to.lookup.keys == (WAMID, "0000000002B7F00120")
    sent = send(Recorder(answered(200, {"messages": [{"id": WAMID}]})))
    assert sent.ids == found.reply_to.lookup.keys
    assert [stanza_id(bad) for bad in ("wamid.", "wamid.!!", WAMID[:-6], "x" + WAMID, "M0")] == [None] * 5


def test_c10_one_unreadable_message_costs_the_others_nothing() -> None:
    fixture = named("cloud_batch_two_messages")
    event = json.loads(json.dumps(fixture["event"]))
    del event["entry"][0]["changes"][0]["value"]["messages"][0]["id"]
    assert [each.text for each in messages(fixture, event)] == ["the form"]
    event["entry"] += json.loads(json.dumps(fixture["event"]))["entry"]
    assert len(messages(fixture, event)) == 3
    with pytest.raises(Malformed):
        CHANNEL.normalise({"entry": [{"changes": [{"value": {"messages": [{"type": "text"}]}}]}]}, account())


def test_another_number_of_the_app_is_another_accounts() -> None:
    event = named("cloud_plain_private")["event"]
    other = account(credentials=CREDENTIALS | {"phone_number_id": "7"})
    assert CHANNEL.normalise(event, other) == []


def test_q38_a_reply_to_the_bot_in_a_group_addresses_it() -> None:
    fixture = named("cloud_quote_bot_message")
    event = json.loads(json.dumps(fixture["event"]))
    event["entry"][0]["changes"][0]["value"]["messages"][0]["group_id"] = "Y2FwaQ"
    assert [each.addressed for each in (*messages(fixture, event), *messages(fixture))] == [True, False]
    [web] = messages(named("web_caption_message_with_quote"))
    assert (web.addressed, web.mentions_bot) == (True, False)


def test_own_answers_in_the_chat_with_oneself_are_no_questions() -> None:
    fixture = named("web_self_chat_from_me")
    fixture["event"]["messages"][0]["key"]["id"] = "3EB0A1B2C3D4E5F600F199"
    [found] = messages(fixture)
    assert (found.action, found.ignore_reason) == ("ignore", "self")


def test_what_could_not_be_decrypted_takes_no_key() -> None:
    raw = {"key": {"remoteJid": "1@lid", "id": "3A", "fromMe": False}, "messageStubType": 2}
    assert CHANNEL.normalise({"messages": [raw]}, account()) == []


def test_a_quote_from_another_chat_is_never_looked_for() -> None:
    fixture = named("web_odd_quote_without_quoted_message")
    context = fixture["event"]["messages"][0]["message"]["extendedTextMessage"]["contextInfo"]
    context["remoteJid"] = "status@broadcast"
    [found] = messages(fixture)
    assert found.reply_to is not None
    assert (found.reply_to.lookup, found.reply_to.unavailable_reason) == (None, "not-delivered")
    assert (found.reply_to.reference_kind, found.reply_to.source_chat_id) == ("status", "status@broadcast")


ODD = ["\ud800", 10**400, "9" * 5000]
NAMES = [
    "entry", "changes", "value", "messages", "id", "from", "type", "text", "key", "remoteJid", "message", "context",
    "contextInfo", "stanzaId", "quotedMessage", "messageTimestamp", "low", "high", "protocolMessage",
]  # fmt: skip
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(ODD),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=12,
)


@given(junk=JUNK, path=st.sampled_from(cases("whatsapp")), data=st.data())
def test_c21_whatever_comes_is_read_or_malformed(junk: Any, path: Path, data: st.DataObject) -> None:
    event: Any = load(path)["event"]
    at: Any = event
    while data.draw(st.booleans(), "deeper"):
        keys: list[Any] = list(at) if isinstance(at, dict) else list(range(len(at)))
        inner = [key for key in keys if isinstance(at[key], (dict, list)) and at[key]]
        if not inner:
            break
        at = at[data.draw(st.sampled_from(inner), "into")]
    where: list[Any] = list(at) if isinstance(at, dict) else list(range(len(at)))
    at[data.draw(st.sampled_from(where), "where")] = junk
    for each in (event, junk):
        try:
            found = CHANNEL.normalise(each, account())
        except Malformed:
            continue
        for message in found:
            message.model_dump_json().encode()


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_c22_signature_over_the_raw_bytes(vector: dict[str, Any]) -> None:
    who = account(credentials={"app_secret": vector["app_secret"]})
    headers = {"x-hub-signature-256": vector["x_hub_signature_256"]}
    request = HookRequest("POST", headers, {}, vector["body"].encode())
    if vector["valid"]:
        CHANNEL.verify(request, who, 0)
        right = vector["x_hub_signature_256"]
        for bad in ("", "sha256=", right + "é", right.upper(), right[:-1]):
            with pytest.raises(Unauthorised):
                CHANNEL.verify(HookRequest("POST", {"x-hub-signature-256": bad}, {}, request.body), who, 0)
        with pytest.raises(Unauthorised):
            CHANNEL.verify(HookRequest("POST", {}, {}, request.body), who, 0)
    else:
        with pytest.raises(Unauthorised):
            CHANNEL.verify(request, who, 0)


def test_c22_without_a_secret_only_an_insecure_account_is_open() -> None:
    for method in ("GET", "POST"):
        request = HookRequest(method, {}, {}, b"{}")
        with pytest.raises(Unauthorised):
            CHANNEL.verify(request, account(credentials={}), 0)
        CHANNEL.verify(request, account(credentials={}, insecure=True), 0)
    unsigned = {"x-hub-signature-256": "sha256=" + hmac.new(b"tide", b"{}", hashlib.sha256).hexdigest()}
    with pytest.raises(Unauthorised):
        CHANNEL.verify(HookRequest("POST", unsigned, {}, b"{}"), account(variant="web"), 0)


def test_handshake_wants_the_verify_token_and_gives_the_challenge() -> None:
    query = {"hub.mode": "subscribe", "hub.verify_token": "ebb", "hub.challenge": "1158201444"}
    request = HookRequest("GET", {}, query, b"")
    CHANNEL.verify(request, account(), 0)
    answer = CHANNEL.handshake(request, account())
    assert answer is not None
    assert (answer.status, answer.body, answer.content_type) == (200, "1158201444", "text/plain")
    for bad in ({**query, "hub.verify_token": "flow"}, {"hub.mode": "subscribe", "hub.challenge": "1"}):
        with pytest.raises(Unauthorised):
            CHANNEL.verify(HookRequest("GET", {}, bad, b""), account(), 0)
    empty = CHANNEL.handshake(HookRequest("GET", {}, {"hub.verify_token": "ebb"}, b""), account())
    assert empty is not None
    assert empty.status == 400
    assert CHANNEL.handshake(HookRequest("POST", {}, query, b"{}"), account()) is None


def test_cloud_send_answers_the_askers_message() -> None:
    api = Recorder(answered(200, {"messages": [{"id": WAMID}]}), answered(200, {"messages": [{"id": "wamid.x"}]}))
    assert send(api, text="**tide** [log](https://harbor.example)").state == "sent"
    assert api.asked[0] == {
        "call": "send",
        "method": "POST",
        "url": "https://graph.facebook.com/v23.0/100000000000321/messages",
        "headers": {"authorization": "Bearer t-invented"},
        "json": {
            "messaging_product": "whatsapp",
            "recipient_type": "individual",
            "to": "12025550143",
            "type": "text",
            "text": {"preview_url": False, "body": "*tide* log (https://harbor.example)"},
            "context": {"message_id": "wamid.Q"},
        },
    }
    stand_in = CREDENTIALS | {"api_url": "http://127.0.0.1:9/v24.0/"}
    assert send(api, Target("Y2FwaQ", "group"), credentials=stand_in).ids == ("wamid.x",)
    assert api.asked[1]["url"] == "http://127.0.0.1:9/v24.0/100000000000321/messages"
    body = api.asked[1]["json"]
    assert (body["recipient_type"], body["to"], "context" in body) == ("group", "Y2FwaQ", False)


@pytest.mark.parametrize("to", [CLOUD, WEB], ids=["cloud", "web"])
@pytest.mark.parametrize(
    ("answer", "state", "reason", "retry"),
    [
        (answered(429, {}, {"Retry-After": "7"}), "not-sent", "rate-limited", True),
        (answered(400, {"error": {"code": 100}}), "not-sent", "delivery-refused", False),
        (answered(401, b"no"), "not-sent", "delivery-refused", False),
        (answered(503, {"error": {"code": 131047}}), "unknown", "delivery-unknown", False),
        (answered(200, b"<html>"), "unknown", "delivery-unknown", False),
        (answered(200, {"messages": []}), "unknown", "delivery-unknown", False),
        (Transient("no connection"), "not-sent", "not-connected", True),
        (EffectUnknown("no answer"), "unknown", "delivery-unknown", False),
    ],
)
def test_section_5_states(
    to: Target, answer: PlatformResponse | MillstreamError, state: str, reason: str, retry: bool
) -> None:
    api = Recorder(answer)
    found = send(api, to)
    assert (found.state, found.reason, found.retry, len(api.asked)) == (state, reason, retry, 1)


def test_the_platforms_codes_tell_a_closed_window_and_a_wait() -> None:
    closed = send(Recorder(answered(400, {"error": {"code": 131047, "message": "Re-engagement message"}})))
    assert closed == Delivery("not-sent", reason="window-closed")
    for code in (4, 80007, 130429, 131048, 131056):
        assert send(Recorder(answered(400, {"error": {"code": code}}))).retry


@pytest.mark.parametrize("to", [CLOUD, WEB], ids=["cloud", "web"])
def test_read_only_refuses_without_a_request(to: Target) -> None:
    api = Recorder()
    assert send(api, to, switches=Switches(read_only=True)) == Delivery("not-sent", reason="read-only-mode")
    run(CHANNEL.acknowledge(to, "working", account(), api, Switches(safe_mode=True)))
    assert api.asked == []


def test_typing_is_a_mark_as_read_and_groups_have_none() -> None:
    api = Recorder(answered(200, {"success": True}), answered(200, {}))
    for to in (CLOUD, Target("Y2FwaQ", "group", None, "wamid.G"), WEB):
        run(CHANNEL.acknowledge(to, "working", account(), api, Switches()))
    [asked] = api.asked
    assert (asked["call"], asked["json"]["status"], asked["json"]["message_id"]) == ("acknowledge", "read", "wamid.Q")
    assert asked["json"]["typing_indicator"] == {"type": "text"}
    run(CHANNEL.acknowledge(CLOUD, "done", account(ack="reaction"), api, Switches()))
    assert api.asked[1]["json"]["reaction"] == {"message_id": "wamid.Q", "emoji": ""}


def test_fetch_goes_to_metas_media_host_only() -> None:
    file = Attachment(kind="image", ref={"media_id": "17"})
    good = {"url": "https://lookaside.fbsbx.com/m?mid=17", "file_size": 3}
    api = Recorder(answered(200, good), answered(200, b"png"))
    assert run(CHANNEL.fetch(file, account(), api, 10)) == b"png"
    for bad in ({**good, "url": "https://evil.example/m"}, {**good, "file_size": "11"}, {}):
        with pytest.raises(Refused):
            run(CHANNEL.fetch(file, account(), Recorder(answered(200, bad)), 10))
    with pytest.raises(Refused):
        run(CHANNEL.fetch(Attachment(kind="image"), account(), Recorder(), 10))


def test_identity_asks_the_numbers_node() -> None:
    node = {"id": "100000000000321", "display_phone_number": "+1 202-555-0190", "verified_name": "Tidewatch"}
    found = run(CHANNEL.identity(account(), Recorder(answered(200, node))))
    assert (found.self_ids, found.name) == (("100000000000321", "12025550190"), "Tidewatch")


def test_the_wire_reads_and_answers_both_forms() -> None:
    for to in (CLOUD, WEB):
        api = Recorder(answered(500, {}))
        send(api, to)
        body = api.asked[0]["json"]
        row = WIRE.row("wa", api.asked[0]["url"], body)
        assert (row.text, row.chat, row.reply_to) == ("hi", to.chat_id, to.reply_to)
        answer = WIRE.success("", body, 900_001, 0)
        assert WIRE.took(answer)
        sent = send(Recorder(answered(200, answer)), to)
        assert (sent.state, sent.ids[-1]) == ("sent", "3EB000000000000DBBA1")
    assert send(Recorder(answered(400, WIRE.refusal(429, None)))).reason == "rate-limited"


def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("BRIDGE_SECRET", "tide")
    spec = importlib.util.spec_from_file_location("whatsapp_bridge", ROOT / "docs" / "examples" / "whatsapp_bridge.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_c22_the_examples_signature_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    client = example(monkeypatch)
    body = json.dumps(named("web_plain_private")["event"]).encode()
    headers = client.signed(client.SECRET, body, 1_790_000_000)
    CHANNEL.verify(HookRequest("POST", headers, {}, body), account(variant="web"), 1_790_000_000_000)
    with pytest.raises(Unauthorised):
        bridge.verify(HookRequest("POST", headers, {}, body + b" "), account(), 1_790_000_000_000)


def test_the_example_accepts_our_answers_as_the_network_writes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    client = example(monkeypatch)
    api = Recorder(answered(200, {"id": "3EB0"}))
    assert send(api, WEB, "潮汐 *now*", credentials=CREDENTIALS | {"bridge_url": "http://127.0.0.1:9/answers"}).ids == (
        "3EB0",
    )
    [asked] = api.asked
    assert asked["url"] == "http://127.0.0.1:9/answers"
    assert asked["json"] == {"chat": WEB.chat_id, "text": "潮汐 _now_", "reply_to": "3A01", "nonce": "n-1"}
    raw = json.dumps(asked["json"], ensure_ascii=False, separators=(",", ":")).encode()  # as shared.channels.http does
    stamp, given = (asked["headers"][f"x-millstream-{name}"] for name in ("timestamp", "signature"))
    assert client.genuine(b"tide", stamp, given, raw, int(stamp))
    assert not client.genuine(b"tide", stamp, given, raw + b" ", int(stamp))
    assert not client.genuine(b"tide", stamp, given, raw, int(stamp) + 301)
