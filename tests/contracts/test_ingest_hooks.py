"""POST /hooks/{account}: what is accepted, what is refused, and that nothing is acknowledged before it is safe."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from ingest_support import (
    NOW_S,
    TELEGRAM_SECRET,
    MemoryPublisher,
    QuickClock,
    app,
    client,
    counted,
    encode,
    mock_message,
    run,
    settings,
    slack_headers,
    slack_message,
    telegram_update,
)

from ingest.app import HANDLE_S, MAX_UNDER_WAY
from ingest.port import Overloaded, Unavailable

VECTORS = Path(__file__).parents[1] / "fixtures/_vectors/west.json"
SLACK_VECTORS: list[dict[str, Any]] = json.loads(VECTORS.read_text(encoding="utf-8"))["slack"]


def post(
    path: str,
    body: bytes,
    headers: dict[str, str] | None = None,
    publisher: MemoryPublisher | None = None,
    clock: QuickClock | None = None,
    **ingest: int,
) -> tuple[httpx.Response, MemoryPublisher]:
    async def work() -> tuple[httpx.Response, MemoryPublisher]:
        used = publisher or MemoryPublisher()
        async with client(app(used, clock, settings(**ingest))) as http:
            return await http.post(path, content=body, headers=headers), used

    return run(work)


def refused(response: httpx.Response, status: int, code: str) -> None:
    assert response.status_code == status
    answer = response.json()
    assert set(answer) == {"error", "detail"}
    assert answer["error"] == code
    assert answer["detail"]
    for trace in ("Traceback", "File ", ".py"):
        assert trace not in response.text


def test_a_signed_slack_message_is_published_and_answered_with_an_empty_200() -> None:
    before = counted("events_received_total", channel="slack", kind="message")
    body = slack_message()
    response, publisher = post("/hooks/sl", body, slack_headers(body))
    assert (response.status_code, response.content) == (200, b"")
    assert [(m.account, m.chat_id, m.sender_id, m.text) for m in publisher.messages] == [
        ("sl", "D0TIDE", "U0MILA", "When is low water?")
    ]
    assert counted("events_received_total", channel="slack", kind="message") == before + 1


def test_a_telegram_update_with_the_shared_secret_is_published() -> None:
    headers = {"X-Telegram-Bot-Api-Secret-Token": TELEGRAM_SECRET}
    response, publisher = post("/hooks/tg", encode(telegram_update()), headers)
    assert (response.status_code, response.content) == (200, b"")
    assert publisher.messages[0].message_id == "1001"


def test_c7_a_slack_retry_whose_first_try_never_arrived_is_processed() -> None:
    body = slack_message()
    headers = {**slack_headers(body), "X-Slack-Retry-Num": "1", "X-Slack-Retry-Reason": "connection_failed"}
    response, publisher = post("/hooks/sl", body, headers)
    assert response.status_code == 200
    assert len(publisher.messages) == 1


def test_c10_every_message_of_one_body_is_published_at_once() -> None:
    response, publisher = post("/hooks/demo", encode([mock_message("m1"), mock_message("m2"), mock_message("m3")]))
    assert response.status_code == 200
    assert [m.message_id for m in publisher.messages] == ["m1", "m2", "m3"]
    assert publisher.batches == [3]


def test_slack_url_verification_is_answered_with_the_challenge() -> None:
    before = counted("events_received_total", channel="slack", kind="handshake")
    body = encode({"type": "url_verification", "challenge": "tide-4711"})
    response, publisher = post("/hooks/sl", body, slack_headers(body))
    assert response.status_code == 200
    assert "tide-4711" in response.text
    assert publisher.messages == []
    assert counted("events_received_total", channel="slack", kind="handshake") == before + 1
    unsigned, _ = post("/hooks/sl", body)
    refused(unsigned, 401, "bad_signature")
    assert "tide-4711" not in unsigned.text


@pytest.mark.parametrize(
    "body", [b"", b"{", b"tide", b"\xff\xfe{}", b'{"a": NaN}', b"[" * 65 + b"]" * 65, b"null", b"7"]
)
def test_c21_a_body_that_is_no_event_is_400(body: bytes) -> None:
    before = counted("events_rejected_total", channel="mock", reason="malformed")
    response, publisher = post("/hooks/demo", body)
    refused(response, 400, "malformed")
    assert publisher.messages == []
    assert counted("events_rejected_total", channel="mock", reason="malformed") == before + 1


@pytest.mark.parametrize(
    "deep", [b"[" * 400_000, b'{"a":' * 150_000, b'{"type":"url_verification","a":' + b"[" * 300_000]
)
def test_c21_a_body_that_is_too_deep_is_400_and_the_process_lives(deep: bytes) -> None:
    async def work() -> None:
        publisher = MemoryPublisher()
        async with client(app(publisher)) as http:
            refused(await http.post("/hooks/sl", content=deep, headers=slack_headers(deep)), 400, "malformed")
            refused(await http.post("/hooks/demo", content=deep), 400, "malformed")
            assert publisher.messages == []
            assert (await http.post("/hooks/demo", content=encode(mock_message()))).status_code == 200

    run(work)


def test_c21_exactly_1_mib_is_taken_and_one_byte_more_is_413() -> None:
    event = encode(mock_message())
    full = event + b" " * (1_048_576 - len(event))
    response, publisher = post("/hooks/demo", full)
    assert response.status_code == 200
    assert len(publisher.messages) == 1
    before = counted("events_rejected_total", channel="mock", reason="too_large")
    response, publisher = post("/hooks/demo", full + b" ")
    refused(response, 413, "too_large")
    assert publisher.messages == []
    assert counted("events_rejected_total", channel="mock", reason="too_large") == before + 1


def test_c21_the_limit_is_the_configured_one() -> None:
    response, _ = post("/hooks/demo", encode(mock_message()), max_body_bytes=20)
    refused(response, 413, "too_large")


@pytest.mark.parametrize("vector", SLACK_VECTORS, ids=lambda v: v["name"])
def test_c22_slack_signature_vectors(vector: dict[str, Any]) -> None:
    class At(QuickClock):
        def now_ms(self) -> int:
            return vector["now"] * 1000

    headers = {
        "x-slack-request-timestamp": str(vector["timestamp"]),
        "x-slack-signature": str(vector["signature"]),
    }
    response, publisher = post("/hooks/sl", vector["body"].encode(), headers, clock=At())
    if vector["valid"]:
        assert response.status_code in (200, 400)
    else:
        refused(response, 401, "bad_signature")
        assert publisher.messages == []


@pytest.mark.parametrize(
    "change",
    [
        {"x-slack-signature": ""},
        {"x-slack-signature": "v0=" + "0" * 64},
        {"x-slack-signature": "v0=ä".encode("latin-1").decode("latin-1")},
        {"x-slack-request-timestamp": ""},
        {"x-slack-request-timestamp": "yesterday"},
        {"x-slack-request-timestamp": "9" * 400},
        {"x-slack-request-timestamp": "nan"},
        {"x-slack-request-timestamp": "-1"},
    ],
)
def test_c22_wrong_missing_stale_or_malformed_signature_is_401(change: dict[str, str]) -> None:
    before = counted("events_rejected_total", channel="slack", reason="bad_signature")
    body = slack_message()
    raw = [(k.encode(), v.encode("latin-1")) for k, v in {**slack_headers(body), **change}.items()]

    async def work() -> None:
        publisher = MemoryPublisher()
        async with client(app(publisher)) as http:
            refused(await http.post("/hooks/sl", content=body, headers=raw), 401, "bad_signature")
        assert publisher.messages == []

    run(work)
    assert counted("events_rejected_total", channel="slack", reason="bad_signature") == before + 1


def test_c22_a_stale_timestamp_is_401_and_301_s_is_stale() -> None:
    body = slack_message()
    refused(post("/hooks/sl", body, slack_headers(body, str(NOW_S - 301)))[0], 401, "bad_signature")
    assert post("/hooks/sl", body, slack_headers(body, str(NOW_S - 300)))[0].status_code == 200


@pytest.mark.parametrize("secret", [None, "", "tide-secret_2", TELEGRAM_SECRET + ","])
def test_c22_a_wrong_telegram_secret_is_401(secret: str | None) -> None:
    headers = {} if secret is None else {"X-Telegram-Bot-Api-Secret-Token": secret}
    response, publisher = post("/hooks/tg", encode(telegram_update()), headers)
    refused(response, 401, "bad_signature")
    assert publisher.messages == []


def test_c22_two_signatures_in_one_request_do_not_let_one_slip_through() -> None:
    async def work() -> None:
        publisher = MemoryPublisher()
        name = b"X-Telegram-Bot-Api-Secret-Token"
        async with client(app(publisher)) as http:
            for values in ((b"wrong", TELEGRAM_SECRET.encode()), (TELEGRAM_SECRET.encode(), b"wrong")):
                headers = [(name, value) for value in values]
                response = await http.post("/hooks/tg", content=encode(telegram_update()), headers=headers)
                refused(response, 401, "bad_signature")
        assert publisher.messages == []

    run(work)


@pytest.mark.parametrize(("scope", "reason"), [("account", "full"), ("global", "full"), ("memory", "overloaded")])
def test_a_full_backlog_is_503_with_retry_after(scope: Any, reason: str) -> None:
    publisher = MemoryPublisher()
    publisher.trouble = Overloaded(scope, 2.5)
    before = counted("events_rejected_total", channel="mock", reason=reason)
    taken = counted("events_received_total", channel="mock", kind="message")
    response, _ = post("/hooks/demo", encode(mock_message()), publisher=publisher)
    refused(response, 503, "overloaded")
    assert response.headers["retry-after"] == "3"
    assert counted("events_rejected_total", channel="mock", reason=reason) == before + 1
    assert counted("events_received_total", channel="mock", kind="message") == taken


def test_a_store_that_does_not_answer_is_503() -> None:
    publisher = MemoryPublisher()
    publisher.trouble = Unavailable("connection lost")
    response, _ = post("/hooks/demo", encode(mock_message()), publisher=publisher)
    refused(response, 503, "unavailable")
    assert int(response.headers["retry-after"]) > 0


def test_nothing_is_acknowledged_before_accept_has_returned() -> None:
    async def work() -> None:
        publisher = MemoryPublisher()
        publisher.gate.clear()
        async with client(app(publisher)) as http:
            request = asyncio.create_task(http.post("/hooks/demo", content=encode(mock_message())))
            await publisher.asked.wait()
            assert not request.done()
            publisher.gate.set()
            assert (await request).status_code == 200

    run(work)


def test_a_store_that_is_too_slow_is_503_within_slacks_three_seconds() -> None:
    async def work() -> None:
        publisher = MemoryPublisher()
        publisher.gate.clear()
        body = slack_message()
        async with client(app(publisher)) as http:
            started = asyncio.get_running_loop().time()
            response = await http.post("/hooks/sl", content=body, headers=slack_headers(body))
            took = asyncio.get_running_loop().time() - started
        refused(response, 503, "too_slow")
        assert HANDLE_S + 0.5 <= 3
        assert HANDLE_S - 0.1 < took < HANDLE_S + 2

    run(work)


def test_too_many_at_once_are_503() -> None:
    async def work() -> None:
        publisher = MemoryPublisher()
        publisher.gate.clear()
        async with client(app(publisher, QuickClock(speed=0.05))) as http:
            body = encode(mock_message())
            tasks = [asyncio.create_task(http.post("/hooks/demo", content=body)) for _ in range(MAX_UNDER_WAY + 5)]
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            refused(done.pop().result(), 503, "overloaded")
            publisher.gate.set()
            answers = [(await task).status_code for task in tasks]
        assert answers.count(200) == MAX_UNDER_WAY
        assert answers.count(503) == 5

    run(work)


def test_a_fault_of_ours_is_500_without_a_trace_and_the_process_lives() -> None:
    async def work() -> None:
        publisher = MemoryPublisher()
        publisher.trouble = RuntimeError("the tide is out")
        async with client(app(publisher)) as http:
            response = await http.post("/hooks/demo", content=encode(mock_message()))
            refused(response, 500, "internal")
            assert "tide" not in response.text
            publisher.trouble = None
            assert (await http.post("/hooks/demo", content=encode(mock_message()))).status_code == 200

    run(work)


@pytest.mark.parametrize("account", ["nobody", "poll", "later", "..", "%00", "a" * 3000])
def test_an_account_without_webhook_is_404(account: str) -> None:
    response, publisher = post(f"/hooks/{account}", encode(mock_message()))
    assert response.status_code == 404
    assert set(response.json()) == {"error", "detail"}
    assert publisher.messages == []


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("POST", "/hooks", 404),
        ("POST", "/hooks/demo/", 404),
        ("POST", "/hooks/demo/more", 404),
        ("PUT", "/hooks/demo", 405),
        ("DELETE", "/hooks/demo", 405),
        ("GET", "/hooks/demo", 405),
        ("POST", "/metrics", 405),
        ("POST", "/livez", 405),
    ],
)
def test_other_paths_and_methods_are_refused_in_json(method: str, path: str, status: int) -> None:
    async def work() -> httpx.Response:
        async with client(app(MemoryPublisher())) as http:
            return await http.request(method, path)

    response = run(work)
    assert response.status_code == status
    assert set(response.json()) == {"error", "detail"}


def test_an_edit_and_what_is_no_message_are_counted_by_kind() -> None:
    headers = {"X-Telegram-Bot-Api-Secret-Token": TELEGRAM_SECRET}
    edits = counted("events_received_total", channel="telegram", kind="edit")
    nothing = counted("events_received_total", channel="telegram", kind="ignore")
    update = telegram_update()
    update["edited_message"] = {**update.pop("message"), "edit_date": NOW_S + 5}
    assert post("/hooks/tg", encode(update), headers)[0].status_code == 200
    assert post("/hooks/tg", encode({"update_id": 7, "poll_answer": {"poll_id": "1"}}), headers)[0].status_code == 200
    assert counted("events_received_total", channel="telegram", kind="edit") == edits + 1
    assert counted("events_received_total", channel="telegram", kind="ignore") == nothing + 1
