"""Hostile events: whatever comes, a parser answers with messages that can be stored, or with Malformed (C-21)."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.channels import BUILT, channel
from shared.channels.port import Delivery, HookRequest, HookResponse, Identity, Part, PlatformResponse, Switches
from shared.envelope import Envelope
from shared.errors import EffectUnknown, Malformed, Refused, Transient, Unauthorised
from shared.message import Attachment, Lookup, Message, ReplyReference
from shared.settings import AccountSettings, from_mapping
from tests.abuse.hostile import any_json, any_text, examples, mutations, outcome, raises_only, spoilt, written
from tests.contracts.golden import cases, load
from tests.contracts.ingest_support import MemoryPublisher, app, client

MOCK_EVENTS: list[Any] = [
    {"message_id": "1", "sender": "anna", "text": "hello"},
    [
        {
            "message_id": "2", "sender": "anna", "chat": "team", "thread": "t", "name": "Anna", "text": "@bot hi",
            "mentions_bot": True, "mentions": ["bot"], "mentions_all": False, "sender_is_bot": False, "system": False,
            "reply_to": {
                "message_id": "1", "author_id": "bob", "author_name": "Bob", "content": "before",
                "attachments": [{"kind": "image", "name": "a.png"}], "unavailable_reason": None,
            },
            "attachments": [{"kind": "file", "name": "b", "media_type": "text/plain", "size": 1, "data": "eA=="}],
            "sent_at_ms": 1_790_000_000_000,
        }
    ],
]  # fmt: skip

EVENTS: list[tuple[str, Any]] = [
    *((name, load(path)["event"]) for name in sorted(BUILT) for path in cases(name)),
    *(("mock", event) for event in MOCK_EVENTS),
]
"""A channel that is added is here as soon as its golden events are."""

ACCOUNTS = from_mapping(
    {"accounts": [{"id": name, "channel": name, "transport": "webhook", "insecure": True} for name in sorted(BUILT)]}
)
NAMES = st.sampled_from(sorted(BUILT))
SECRETS = dict.fromkeys(
    ("secret", "signing_secret", "token", "verify_token", "encrypt_key", "app_secret", "app_id", "app_key"), "s3"
) | {"phone_number_id": "100000000000321"}


def strict(name: str) -> AccountSettings:
    """An account whose signatures are checked."""
    return AccountSettings.model_validate({"id": "acct", "channel": name, "credentials": SECRETS})


def survives(name: str, event: Any) -> None:
    account = AccountSettings.model_validate({"id": "acct", "channel": name, "self_id": "7100000042"})
    messages = outcome(Malformed, lambda: channel(name).normalise(event, account))
    if isinstance(messages, Malformed):
        assert len(str(messages).encode()) < 2400
        return
    for message in messages:
        assert message.keys
        assert all(message.keys)
        assert message.chat_id
        envelope = Envelope(id="01", message=message, received_at_ms=1)
        assert Envelope.from_json(envelope.to_json()) == envelope
        assert message.identity
        channel(name).target(message)


@given(st.data())
@examples(1000)
def test_c21_mutated_events_are_messages_or_malformed(data: st.DataObject) -> None:
    name, event = data.draw(st.sampled_from(EVENTS))
    survives(name, data.draw(mutations(event)))


@given(NAMES, any_json)
@examples(300)
def test_c21_any_json_is_messages_or_malformed(name: str, event: Any) -> None:
    survives(name, event)


@pytest.mark.parametrize("name", sorted(BUILT))
def test_c21_events_that_are_no_objects_are_malformed(name: str) -> None:
    account = AccountSettings.model_validate({"id": "acct", "channel": name})
    for event in (None, 5, "text", True, *([[5]] if name == "mock" else [] if name == "whatsapp" else [[{}]])):
        with pytest.raises(Malformed):
            channel(name).normalise(event, account)


def test_c21_a_rich_message_of_a_thousand_levels_is_read_to_a_bound() -> None:
    value: Any = "x"
    for _ in range(900):
        value = {"text": [value]}
    chat = {"id": 5, "type": "private"}
    event = {"update_id": 1, "message": {"message_id": 1, "chat": chat, "rich_message": {"blocks": [value]}}}
    survives("telegram", event)


HEADERS = st.dictionaries(
    any_text
    | st.sampled_from(
        ["x-slack-request-timestamp", "x-slack-signature", "x-telegram-bot-api-secret-token", "x-millstream-secret"]
    ),
    any_text | st.sampled_from(["1790000000", "9" * 5000, "٣٣٣", "-1", "v0=", "v0=ÿ"]),
    max_size=6,
)


@given(NAMES, HEADERS, st.binary(max_size=40), st.integers(0, 2**62))
@examples(500)
def test_c21_no_headers_get_past_a_signature_or_break_it(
    name: str, headers: Mapping[str, str], body: bytes, now_ms: int
) -> None:
    with pytest.raises(Unauthorised):
        channel(name).verify(HookRequest("POST", headers, {}, body), strict(name), now_ms)


@given(st.data())
@examples(400)
def test_a_handshake_is_an_answer_that_can_be_sent_or_none(data: st.DataObject) -> None:
    name, event = data.draw(st.sampled_from([*EVENTS, ("slack", {"type": "url_verification", "challenge": "c"})]))
    body = data.draw(spoilt(written(event)) | mutations(event).map(written) | st.binary(max_size=50))
    query = data.draw(st.dictionaries(any_text, any_text, max_size=3))
    answer = channel(name).handshake(HookRequest("POST", {}, query, body), strict(name))
    assert answer is None or isinstance(answer, HookResponse)
    assert answer is None or answer.body.encode()


def answered(name: str, bodies: list[bytes]) -> list[int]:
    """The edge's answers to bodies from somebody who knows the address."""

    async def work() -> list[int]:
        async with client(app(MemoryPublisher(), config=ACCOUNTS)) as http:
            return [(await http.post(f"/hooks/{name}", content=body)).status_code for body in bodies]

    return asyncio.run(work())


@given(st.data())
@examples(250)
def test_c21_the_edge_answers_any_bytes_and_never_by_a_fault(data: st.DataObject) -> None:
    name, event = data.draw(st.sampled_from(EVENTS))
    body = data.draw(spoilt(written(event)) | mutations(event).map(written) | st.binary(max_size=200))
    assert answered(name, [body])[0] in (200, 400)


@pytest.mark.parametrize("name", sorted(BUILT))
def test_c21_the_edge_answers_what_others_choke_on(name: str) -> None:
    bodies = [
        b"[" * 900_000, b'{"a":' * 150_000, b'"' * 1_000_000, b"\\" * 1_000_000, b'{"n":' + b"9" * 900_000 + b"}",
        b'["' + b"\\ud800" * 150_000 + b'"]', b'{"update_id":1,"update_id":' + b"1e400}", b"NaN", b"", b"\x00" * 1000,
        b'{"a":1}' + b" " * 900_000, b"[" + b"{}," * 300_000 + b"{}]", b"\xff" * 1000, b"[]", b"{}", b'"x"', b"0",
    ]  # fmt: skip
    assert set(answered(name, bodies)) <= {200, 400}


class HostilePlatform:
    """A platform that answers every call with the same thing."""

    def __init__(self, response: PlatformResponse | Transient | EffectUnknown) -> None:
        self._response = response

    async def request(self, *_: Any, **__: Any) -> PlatformResponse:
        if isinstance(self._response, PlatformResponse):
            return self._response
        raise self._response


ANSWERS: list[Any] = [
    {"ok": True, "result": {"message_id": 7, "id": 1, "is_bot": True, "username": "b", "file_path": "a/b"}},
    {"ok": True, "messages": [{"ts": "1790000110.000119", "user": "U1", "text": "t", "files": [{"name": "n"}]}]},
    {"ok": False, "error": "ratelimited", "error_code": 429, "parameters": {"retry_after": 3}, "description": "no"},
    {"ok": True, "ts": "1790000110.000119", "user_id": "U1", "bot_id": "B1", "user": "bot", "channel": "C1"},
    {"id": "out-1"},
]  # fmt: skip


@st.composite
def responses(draw: st.DrawFn) -> PlatformResponse | Transient | EffectUnknown:
    good = draw(st.sampled_from(ANSWERS))
    body = draw(mutations(good).map(written) | spoilt(written(good)) | st.just(written(good)))
    waits = st.sampled_from(["3", "NaN", "inf", "-1", "1e400", "Thu, 01 Jan 1970 00:00:00 GMT", "\x00", "9" * 5000])
    headers = draw(st.dictionaries(st.sampled_from(["Retry-After", "content-type"]), waits, max_size=2))
    status = draw(st.sampled_from([200, 200, 200, 201, 302, 400, 401, 403, 404, 410, 429, 500, 503, 999]))
    broken: list[PlatformResponse | Transient | EffectUnknown] = [Transient("no connection"), EffectUnknown("broken")]
    return draw(st.just(PlatformResponse(status, headers, body)) | st.sampled_from(broken))


def spoken(name: str) -> Message:
    wanted = Lookup(via="platform", chat_id="C1", message_id="1790000110.000119", thread_id="1790000110.000119")
    return Message(
        channel=name,  # type: ignore[arg-type]
        account="acct", message_id="1790000110.000119", keys=("k",), chat_id="C1", chat_type="group", sender_id="U1",
        thread_id="1790000110.000119", reply_to=ReplyReference(message_id="1790000110.000119", lookup=wanted),
        route={"response_url": "https://qyapi.weixin.qq.com/cgi-bin/aibot/response?response_code=x"},
    )  # fmt: skip


@given(NAMES, responses(), any_text)
@examples(600)
def test_whatever_a_platform_answers_a_call_ends_as_the_port_says(name: str, response: Any, text: str) -> None:
    platform, api, account = channel(name), HostilePlatform(response), strict(name)
    message = spoken(name)
    reference = message.reply_to
    assert reference is not None
    assert reference.lookup is not None
    target = platform.target(message)
    part = Part("text", text=platform.render(text.encode("utf-8", "replace").decode()) or "x")
    file = Attachment(kind="file", name="n", ref={"file_id": "f", "url": "https://files.slack.com/x", "data": "e===A"})

    async def calls() -> None:
        found = await platform.lookup(reference.lookup, message, account, api)  # type: ignore[arg-type]
        assert isinstance(found, ReplyReference)
        assert found.model_dump_json()
        delivery = await platform.send(target, part, "nonce", account, api, Switches())
        assert isinstance(delivery, Delivery)
        assert json.dumps(delivery.ids).encode()
        assert delivery.retry_after_s is None or 0 <= delivery.retry_after_s < 1e9

    asyncio.run(calls())

    def tried(work: Any, allowed: Any) -> Any:
        return raises_only(allowed, lambda: asyncio.run(work))

    definite = (Transient, Refused, EffectUnknown)
    assert tried(platform.verify_source(message, account, api), Transient) in (True, False, None)
    assert isinstance(tried(platform.identity(account, api), definite), Identity | None)
    assert isinstance(tried(platform.fetch(file, account, api, 1000), definite), bytes | None)
