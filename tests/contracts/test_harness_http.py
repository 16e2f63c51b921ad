"""The HTTP harness against a real server on loopback: what is written, how often, and what each answer means."""

import hashlib
import hmac
import json

import jsonschema
import pytest
from pydantic import SecretStr

from shared.channels.port import Part
from shared.errors import EffectUnknown, Transient
from shared.harness.port import (
    Answer,
    HarnessRefused,
    Progress,
    Question,
    TurnEvent,
)
from tests.contracts.harness_http_support import EVENTS, GOOD, SCHEMAS, SECRET, TURN, WHOLE, ask, harness, ignore, run
from tests.platforms.harness_server import (
    Reply,
    SteppedClock,
    refused_url,
    reply,
    serving,
    stream,
)


def test_a_turn_is_posted_once_signed_and_by_the_schema() -> None:
    clock = SteppedClock(1_788_280_000_123)
    with serving(reply(200, WHOLE)) as server:
        answer = run(harness(server.url, clock, api_key=SecretStr("token")).ask(TURN, ignore))
    assert answer == GOOD
    (seen,) = server.requests
    assert (seen.method, seen.target) == ("POST", "/turns")
    assert seen.headers["idempotency-key"] == TURN.id
    assert seen.headers["x-millstream-timestamp"] == "1788280000"
    signed = hmac.new(SECRET.encode(), b"1788280000." + seen.body, hashlib.sha256).hexdigest()
    assert seen.headers["x-millstream-signature"] == f"v1={signed}"
    assert seen.headers["authorization"] == "Bearer token"
    assert seen.headers["content-type"] == "application/json"
    body = seen.json()
    jsonschema.validate(body, json.loads((SCHEMAS / "turn.schema.json").read_text()))
    assert body == {
        "version": 1,
        "turn_id": TURN.id,
        "session": "session-1",
        "title": "你好",
        "attempt": 2,
        "model": "",
        "system": ["be kind"],
        "prompt": TURN.prompt,
        "text": "你好",
        "source": {"channel": "mock", "conversationType": "direct", "senderId": "2"},
        "reply_to": {"note": "n", "content": "原文"},
        "attachments": [
            {
                "kind": "image",
                "name": "a.png",
                "media_type": "image/png",
                "size": 1,
                "digest": "ab" * 32,
                "data": "AA==",
            },
            {"kind": "file", "name": "b.pdf", "unavailable": "too-large"},
        ],
        "context": [{"label": "小明", "text": "早", "at_ms": 5}],
    }


def test_without_a_secret_nothing_is_signed() -> None:
    with serving(reply(200, WHOLE)) as server:
        ask(server, secret=SecretStr(""))
    assert "x-millstream-signature" not in server.requests[0].headers
    assert "authorization" not in server.requests[0].headers


def test_an_answer_may_hold_files_and_a_question() -> None:
    body = {
        "parts": [
            {"type": "text", "text": "see"},
            {"type": "file", "name": "r.pdf", "media_type": "application/pdf", "url": "https://example.org/r.pdf"},
        ],
        "question": {"id": "q1", "text": "Which?", "options": ["a", "b"]},
        "usage": {"ignored": True},
    }
    jsonschema.validate(body, json.loads((SCHEMAS / "answer.schema.json").read_text()))
    with serving(reply(200, body)) as server:
        answer = ask(server)
    file = Part("file", name="r.pdf", media_type="application/pdf", ref="https://example.org/r.pdf")
    assert answer == Answer((Part("text", "see"), file), Question("q1", "Which?", ("a", "b")))


def test_a_refused_connection_is_transient() -> None:
    with pytest.raises(Transient):
        run(harness(refused_url()).ask(TURN, ignore))


@pytest.mark.parametrize(
    ("status", "headers", "wait_s"), [(429, {"Retry_After": "7"}, 7.0), (503, {}, None), (500, {}, None)]
)
def test_429_and_5xx_are_transient_and_asked_once(status: int, headers: dict[str, str], wait_s: float | None) -> None:
    with serving(reply(status, b"oops", "text/plain", **headers)) as server, pytest.raises(Transient) as raised:
        ask(server)
    assert raised.value.retry_after_s == wait_s
    assert (server.connections, len(server.requests)) == (1, 1)


@pytest.mark.parametrize("status", [204, 302, 400, 401, 404, 409, 422])
def test_other_answers_are_refusals_and_asked_once(status: int) -> None:
    with serving(reply(status, Location="/elsewhere")) as server, pytest.raises(HarnessRefused, match=str(status)):
        ask(server)
    assert (server.connections, len(server.requests)) == (1, 1)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n"


@pytest.mark.parametrize(
    "broken",
    [
        Reply(then="close"),
        Reply(then="reset"),
        Reply((HEAD, b'{"parts"')),
        Reply((HEAD, b'{"parts"'), then="reset"),
        Reply((b"no http at all\r\n\r\n",)),
        stream(b'event: delta\ndata: {"text": "a"}\n\n'),
        stream(b'event: delta\ndata: {"text": "a"}\n\n', then="reset", ended=False),
    ],
    ids=["closed", "reset", "cut", "cut-reset", "no-http", "no-done", "stream-reset"],
)
def test_what_breaks_after_the_request_was_written_is_unknown_and_asked_once(broken: Reply) -> None:
    with serving(broken) as server, pytest.raises(EffectUnknown):
        ask(server)
    assert (server.connections, len(server.requests)) == (1, 1)


@pytest.mark.parametrize("slow", [Reply(then="hold"), Reply((HEAD, b"{"), then="hold")], ids=["silent", "stuck"])
def test_a_silent_harness_is_unknown_after_the_time_limit(slow: Reply) -> None:
    with serving(slow) as server, pytest.raises(EffectUnknown, match="ReadTimeout"):
        ask(server, timeout_s=0.2)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "invalid",
    [
        reply(200, b"{}"),
        reply(200, b"no json"),
        reply(200, b'{"parts": [{"type": "text", "text": "\xff"}]}'),
        reply(200, b"[" * 100_000),
        reply(200, {"parts": [{"type": "video"}]}),
        reply(200, {"parts": [{"type": "image", "name": "a", "url": "file:///etc/passwd"}]}),
        reply(200, WHOLE, "text/html"),
        reply(200, WHOLE, Content_Encoding="gzip"),
        reply(200, b" " * 1_048_577),
        stream(b"event: delta\ndata: \xff\n\n"),
        stream(b"event: delta\ndata: {}\n\n"),
        stream(*[b"x" * 65_536] * 17),
        stream(b"event: error\ndata: {}\n\n"),
        reply(202, {}),
    ],
)
def test_invalid_answers_are_refused(invalid: Reply) -> None:
    with serving(invalid) as server, pytest.raises(HarnessRefused):
        ask(server)
    assert len(server.requests) == 1


@pytest.mark.parametrize("size", [1, 2, 3, 7, len(EVENTS)])
def test_a_stream_is_read_however_it_is_cut(size: int) -> None:
    events: list[TurnEvent] = []
    with serving(stream(*(EVENTS[at : at + size] for at in range(0, len(EVENTS), size)))) as server:
        answer = run(harness(server.url).ask(TURN, events.append))
    assert answer == Answer((Part("text", "你好😀"),))
    assert events
    assert set(events) == {Progress()}


def test_an_answer_ends_with_done_though_the_connection_stays() -> None:
    with serving(stream(EVENTS, then="hold", ended=False)) as server:
        assert ask(server) == Answer((Part("text", "你好😀"),))
        server.wait_for_hang_up()


def test_a_transient_error_event_may_be_tried_again() -> None:
    event = b'event: error\ndata: {"transient": true, "retry_after_s": 3}\n\n'
    with serving(stream(event)) as server, pytest.raises(Transient) as raised:
        ask(server)
    assert raised.value.retry_after_s == 3
