"""The HTTP harness on loopback: polling, resuming, cancelling, questions and history."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from shared.errors import Transient
from shared.harness.http import Http
from shared.harness.port import (
    Answer,
    HarnessRefused,
    HistoryLine,
    Progress,
    Question,
    TurnAccepted,
    TurnEvent,
)
from tests.contracts.harness_http_support import EVENTS, GOOD, SCHEMAS, SECRET, TURN, WHOLE, ask, harness, ignore, run
from tests.platforms.harness_server import (
    LoopbackServer,
    Reply,
    SteppedClock,
    refused_url,
    reply,
    serving,
    stream,
)


def test_a_202_is_polled_until_it_is_done() -> None:
    clock = SteppedClock()
    events: list[TurnEvent] = []
    replies = (
        reply(202, Location="/turns/1?a=b"),
        reply(202, Retry_After="4"),
        reply(503, Retry_After="6"),
        Reply(then="reset"),
        reply(202, Retry_After="9999"),
        reply(200, WHOLE),
    )
    with serving(*replies) as server:
        assert run(harness(server.url, clock).ask(TURN, events.append)) == GOOD
    assert [(seen.method, seen.target) for seen in server.requests] == [("POST", "/turns")] + [
        ("GET", "/turns/1?a=b")
    ] * 5
    assert {seen.headers["idempotency-key"] for seen in server.requests} == {TURN.id}
    assert clock.slept == [0.5, 4.0, 6.0, pytest.approx(0.5 * 1.5**2), 60.0]
    signed = hmac.new(
        SECRET.encode(), server.requests[1].headers["x-millstream-timestamp"].encode() + b".", hashlib.sha256
    )
    assert server.requests[1].headers["x-millstream-signature"] == f"v1={signed.hexdigest()}"
    assert events[0] == TurnAccepted(f"http://127.0.0.1:{server.port}/turns/1?a=b")
    assert set(events[1:]) == {Progress()}


def test_the_turn_url_is_told_before_the_first_poll() -> None:
    polled: list[int] = []
    with serving(reply(202, {"turn_url": "1"}), reply(200, WHOLE)) as server:
        run(harness(server.url).ask(TURN, lambda event: polled.append(len(server.requests))))
        assert polled == [1]
        assert server.requests[1].target == "/1"


def test_the_wait_between_polls_grows_to_ten_seconds() -> None:
    clock = SteppedClock()
    with serving(reply(202, Location="/t"), *[reply(202)] * 12, reply(200, WHOLE)) as server:
        run(harness(server.url, clock).ask(TURN, ignore))
    assert clock.slept == sorted(clock.slept)
    assert (clock.slept[0], clock.slept[-1]) == (0.5, 10.0)


def test_any_worker_resumes_a_turn_by_its_url() -> None:
    clock = SteppedClock()
    with serving(reply(202), reply(200, WHOLE)) as server:
        assert run(harness(server.url, clock).resume(TURN, f"http://127.0.0.1:{server.port}/turns/1", ignore)) == GOOD
    assert {seen.method for seen in server.requests} == {"GET"}
    assert clock.slept[0] == 0


@pytest.mark.parametrize("status", [404, 410, 401, 302])
def test_a_turn_that_is_gone_is_refused(status: int) -> None:
    with serving(reply(202, Location="/t"), reply(status)) as server, pytest.raises(HarnessRefused, match=str(status)):
        ask(server)
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1:1/t",
        "//example.org/t",
        "https://127.0.0.1:{port}/t",
        "file:///etc/passwd",
        "http://[",
        "http://localhost:{port}/t",
        "http://somebody@127.0.0.1:{port}/t",
    ],
)
def test_a_turn_url_of_another_origin_is_never_asked(location: str) -> None:
    with serving(reply(200)) as server:
        server.replies = (reply(202, Location=location.format(port=server.port)),)
        with pytest.raises(HarnessRefused):
            ask(server)
        assert len(server.requests) == 1
        with pytest.raises(HarnessRefused):
            run(harness(server.url).resume(TURN, location.format(port=server.port), ignore))
        run(harness(server.url).cancel(TURN, location.format(port=server.port)))
        assert len(server.requests) == 1


def test_cancelling_deletes_the_turn_url() -> None:
    with serving(reply(204)) as server:
        run(harness(server.url).cancel(TURN, f"http://127.0.0.1:{server.port}/turns/1"))
    (seen,) = server.requests
    assert (seen.method, seen.target) == ("DELETE", "/turns/1")


def test_cancelling_a_turn_without_a_url_posts_its_id() -> None:
    with serving(reply(200)) as server:
        run(harness(server.url + "/?k=v").cancel(TURN, None))
    (seen,) = server.requests
    assert (seen.method, seen.target, seen.json()) == ("POST", "/turns/cancel?k=v", {"turn_id": TURN.id})


@pytest.mark.parametrize("answer", [reply(500), reply(404), Reply(then="reset")])
def test_cancelling_never_raises(answer: Reply) -> None:
    with serving(answer) as server:
        run(harness(server.url).cancel(TURN, None))
    run(harness(refused_url()).cancel(TURN, None))
    assert len(server.requests) == 1


def test_an_answered_question_goes_on_under_a_key_of_its_own() -> None:
    question = Question("q\r\n1", "Which?", ("a",), "approval")
    with serving(reply(200, WHOLE)) as server:
        assert run(harness(server.url).answer(TURN, question, "a", ignore)) == GOOD
    (seen,) = server.requests
    body = {"turn_id": TURN.id, "session": "session-1", "question_id": "q\r\n1", "kind": "approval", "text": "a"}
    assert seen.json() == {"interaction": body}
    jsonschema.validate(seen.json(), json.loads((SCHEMAS / "turn.schema.json").read_text()))
    assert seen.headers["idempotency-key"].startswith(f"{TURN.id}:")


def test_history_is_a_page_newest_first() -> None:
    lines = [
        {"role": "user", "text": "q", "at_ms": 1},
        {"role": "assistant", "text": "a", "at_ms": 9, "turn": "failed", "turn_started_ms": 1, "turn_ended_ms": 9},
        {"role": "assistant", "text": "not asked for", "at_ms": 10},
    ]
    with serving(reply(200, {"lines": lines, "more": True})) as server:
        page = run(harness(server.url).history("s 1", 10, 100))
    assert page.lines == (HistoryLine("assistant", "a", 9, "failed", 1, 9), HistoryLine("user", "q", 1))
    assert page.more
    assert server.requests[0].target == "/turns/history?session=s+1&before_ms=10&limit=100"


@pytest.mark.parametrize("status", [404, 501])
def test_a_harness_without_history_has_an_empty_page(status: int) -> None:
    with serving(reply(status)) as server:
        page = run(harness(server.url).history("s", 1, 1))
    assert (page.lines, page.more) == ((), False)


def test_a_history_that_fails_says_so() -> None:
    with serving(reply(503)) as server, pytest.raises(Transient):
        run(harness(server.url).history("s", 1, 1))
    with serving(reply(200, {"lines": "?"})) as server, pytest.raises(HarnessRefused):
        run(harness(server.url).history("s", 1, 1))


@pytest.mark.parametrize(
    "started",
    [
        lambda h, s: h.ask(TURN, ignore),
        lambda h, s: h.resume(TURN, s.url, ignore),
        lambda h, s: h.history("s", 1, 1),
    ],
    ids=["ask", "resume", "history"],
)
@pytest.mark.parametrize(
    "held", [Reply(then="hold"), stream(EVENTS[:60], then="hold", ended=False)], ids=["head", "body"]
)
def test_a_cancelled_call_hangs_up(started: Callable[[Http, LoopbackServer], Any], held: Reply) -> None:
    async def cancelled(server: LoopbackServer) -> None:
        task = asyncio.ensure_future(started(harness(server.url), server))
        await asyncio.to_thread(server.wait_for_requests, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(server.wait_for_hang_up)

    with serving(held) as server:
        run(cancelled(server))


def test_one_harness_serves_the_loops_of_several_threads() -> None:
    async def both() -> list[Answer]:
        made = harness(server.url)
        return list(
            await asyncio.gather(*(asyncio.to_thread(lambda: asyncio.run(made.ask(TURN, ignore))) for _ in range(4)))
        )

    with serving(reply(200, WHOLE)) as server:
        assert run(both()) == [GOOD] * 4
    assert server.connections == 4
