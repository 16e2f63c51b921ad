"""The openai harness against a real server on loopback: what is written, how often, and what each answer means."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from pydantic import SecretStr
from redis.backoff import NoBackoff
from redis.retry import Retry

from shared.channels.port import Part
from shared.errors import Transient
from shared.harness.openai import OpenAI
from shared.harness.port import (
    Answer,
    ContextRow,
    HarnessRefused,
    Progress,
    Question,
    Turn,
    TurnAttachment,
    TurnEvent,
)
from shared.redis.embedded import Embedded
from shared.sessions import Sessions
from shared.settings import HarnessSettings
from tests.platforms.harness_server import LoopbackServer, Reply, SteppedClock, refused_url, reply, serving, stream
from tests.platforms.openai_server import DONE, broken, chunk, completion, event, refusal

NOW_MS = 1_788_280_000_000


@pytest.fixture(scope="module")
def server_of_sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    folder: Path = tmp_path_factory.mktemp("redis")
    with Embedded.start(folder, durable=False) as running:
        yield running


@pytest.fixture
def sessions(server_of_sessions: Embedded) -> Iterator[Sessions]:
    client = redis.Redis.from_url(server_of_sessions.url)
    client.flushdb()
    yield Sessions(client, SteppedClock(NOW_MS))
    client.close()


def turn(number: int = 1, **changes: Any) -> Turn:
    given: dict[str, Any] = {
        "id": f"turn-{number}",
        "session": "s",
        "system": (),
        "prompt": f"p{number}",
        "text": "t",
        "source": {},
    }
    return Turn(**(given | changes))


def harness(url: str, sessions: Sessions, **settings: Any) -> OpenAI:
    base = url.removesuffix("/turns") + "/v1"
    given = {"kind": "openai", "url": base, "model": "m", "timeout_s": 5} | settings
    return OpenAI("main", HarnessSettings.model_validate(given), sessions)


def ignore(_: TurnEvent) -> None:
    """Nobody listens."""


def ask(server: LoopbackServer, sessions: Sessions, asked: Turn, **settings: Any) -> Answer:
    return asyncio.run(harness(server.url, sessions, **settings).ask(asked, ignore))


def fill(sessions: Sessions, turns: int) -> None:
    for number in range(turns):
        sessions.append_turn(
            "s", f"old-{number}", f"q{number}", f"a{number}", NOW_MS - 100 + number, NOW_MS - 99 + number
        )


def texts(request: Any) -> list[str]:
    return [message["content"] for message in request.json()["messages"]]


def test_a_turn_is_one_streamed_completion(sessions: Sessions) -> None:
    events: list[TurnEvent] = []
    asked = turn(system=("be kind", "be brief"), context=(ContextRow("小明", "早", 5),), model="other", title="t")
    with serving(completion("好", "的😀")) as server:
        made = harness(server.url, sessions, api_key=SecretStr("sk-invented"))
        answer = asyncio.run(made.ask(asked, events.append))
    assert answer == Answer((Part("text", "好的😀"),))
    (seen,) = server.requests
    assert (seen.method, seen.target) == ("POST", "/v1/chat/completions")
    assert seen.headers["authorization"] == "Bearer sk-invented"
    body = seen.json()
    assert (body["model"], body["stream"]) == ("other", True)
    assert [m["role"] for m in body["messages"]] == ["system", "user", "user"]
    assert texts(seen)[0] == "be kind\n\nbe brief"
    assert texts(seen)[1].startswith("<dsh_im_context>")
    assert texts(seen)[2] == "p1"
    assert set(events) == {Progress()}
    assert made.idempotent
    assert sessions.title("s") == "t"


def test_no_key_of_the_environment_is_sent(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    with serving(completion("a")) as server:
        ask(server, sessions, turn())
    assert server.requests[0].headers["authorization"] == "Bearer unused"


def test_the_session_goes_along_and_grows(sessions: Sessions) -> None:
    with serving(completion("a1"), completion("a2")) as server:
        ask(server, sessions, turn(1))
        ask(server, sessions, turn(2))
    assert texts(server.requests[1]) == ["p1", "a1", "p2"]
    assert [line.text for line in sessions.page("s", NOW_MS + 1, 9).lines] == ["a2", "p2", "a1", "p1"]


def test_a_session_is_bounded_by_its_settings(sessions: Sessions) -> None:
    fill(sessions, 5)
    with serving(completion("a")) as server:
        ask(server, sessions, turn(), session_messages=4)
        assert texts(server.requests[0]) == ["q3", "a3", "q4", "a4", "p1"]
    assert len(sessions.page("s", NOW_MS + 1, 99).lines) == 4


def test_a_repeated_turn_gets_its_first_answer_and_is_recorded_once(sessions: Sessions) -> None:
    with serving(completion("first"), completion("second")) as server:
        assert ask(server, sessions, turn()) == ask(server, sessions, turn()) == Answer((Part("text", "first"),))
    assert len(server.requests) == 1
    assert len(sessions.page("s", NOW_MS + 1, 99).lines) == 2


def test_images_are_shown_to_the_model(sessions: Sessions) -> None:
    picture = TurnAttachment("image", "a.png", "image/png", reader=lambda: b"\x00")
    with serving(completion("a")) as server:
        ask(server, sessions, turn(attachments=(picture,)))
    content = server.requests[0].json()["messages"][0]["content"]
    assert content[1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}


def test_a_refused_connection_is_transient(sessions: Sessions) -> None:
    with pytest.raises(Transient):
        asyncio.run(harness(refused_url(), sessions).ask(turn(), ignore))


@pytest.mark.parametrize(
    ("answer", "wait_s"),
    [
        (refusal(429, "rate_limit_exceeded", Retry_After="7"), 7.0),
        (refusal(500), None),
        (refusal(503, Retry_After="2"), 2.0),
        (reply(502, b"<html>", "text/html"), None),
        (Reply(), None),
        (Reply(then="reset"), None),
        (broken("a", then="close"), None),
        (broken("a", then="reset"), None),
        (stream(chunk("a")), None),
        (stream(chunk("a"), event(b'{"error": {"message": "overloaded", "type": "server_error"}}')), None),
    ],
    ids=["429", "500", "503", "502", "closed", "reset", "cut", "cut-reset", "no-finish", "error-event"],
)
def test_transient_failures_are_asked_once(sessions: Sessions, answer: Reply, wait_s: float | None) -> None:
    with serving(answer) as server, pytest.raises(Transient) as raised:
        ask(server, sessions, turn())
    assert raised.value.retry_after_s == wait_s
    assert (server.connections, len(server.requests)) == (1, 1)
    assert sessions.page("s", NOW_MS + 1, 9).lines == ()


@pytest.mark.parametrize("slow", [Reply(then="hold"), broken("a", then="hold")], ids=["silent", "stuck"])
def test_a_silent_endpoint_is_transient_after_the_time_limit(sessions: Sessions, slow: Reply) -> None:
    with serving(slow) as server, pytest.raises(Transient, match="Timeout"):
        ask(server, sessions, turn(), timeout_s=0.2)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        refusal(400),
        refusal(401),
        refusal(404),
        refusal(409),
        refusal(422),
        stream(event(b'{"error": {"message": "bad", "type": "invalid_request_error"}}')),
        stream(event(b"no json")),
        stream(event(b'{"choices": [{"delta": {"content": "\xff"}}]}')),
        stream(event(b'{"choices": [{"delta": {"content": 5}}]}')),
        stream(event(b'{"object": "list"}')),
        stream(event(b'"text"')),
        reply(200, {"choices": []}),
        reply(200, b"<html>", "text/html"),
        stream(*[chunk("x" * 65_536)] * 17),
        stream(DONE),
    ],
)
def test_refusals_and_invalid_answers_are_asked_once_and_recorded(sessions: Sessions, answer: Reply) -> None:
    with serving(answer) as server, pytest.raises(HarnessRefused):
        ask(server, sessions, turn())
    assert (server.connections, len(server.requests)) == (1, 1)
    (line,) = sessions.page("s", NOW_MS + 1, 9).lines
    assert (line.role, line.text, line.turn) == ("user", "p1", "failed")


def test_an_error_never_quotes_the_endpoint(sessions: Sessions) -> None:
    with serving(refusal(400, message="your prompt p1 is bad")) as server, pytest.raises(HarnessRefused) as raised:
        ask(server, sessions, turn())
    assert str(raised.value) == "the endpoint answered 400"


@pytest.mark.parametrize("size", [1, 5, 64])
def test_a_stream_is_read_however_it_is_cut(sessions: Sessions, size: int) -> None:
    data = b"".join((chunk("中"), chunk("文😀"), chunk(finish="stop"), DONE))
    with serving(stream(*(data[at : at + size] for at in range(0, len(data), size)))) as server:
        assert ask(server, sessions, turn()) == Answer((Part("text", "中文😀"),))


def test_surrogate_halves_in_two_chunks_are_one_character(sessions: Sessions) -> None:
    halves = [json.dumps({"choices": [{"delta": {"content": half}}]}).encode() for half in ("\ud83d", "\ude00")]
    with serving(stream(*map(event, halves), chunk(finish="stop"), DONE)) as server:
        assert ask(server, sessions, turn()) == Answer((Part("text", "😀"),))


def test_an_empty_completion_has_no_parts(sessions: Sessions) -> None:
    with serving(completion()) as server:
        assert ask(server, sessions, turn()) == Answer(())


@pytest.mark.parametrize(
    "too_long",
    [
        refusal(400, "context_length_exceeded"),
        refusal(400, message="This model's maximum context length is 4096 tokens"),
        refusal(413, message="the prompt is too long"),
        stream(event(b'{"error": {"message": "n", "code": "context_length_exceeded"}}')),
    ],
)
def test_a_refusal_for_length_halves_the_session_and_repeats_once(sessions: Sessions, too_long: Reply) -> None:
    fill(sessions, 3)
    with serving(too_long, completion("a"), completion("b")) as server:
        assert ask(server, sessions, turn(1)) == Answer((Part("text", "a"),))
        assert texts(server.requests[1]) == ["q2", "a2", "p1"]
        ask(server, sessions, turn(2))
        assert texts(server.requests[2]) == ["q2", "a2", "p1", "a", "p2"]
    assert len(sessions.page("s", NOW_MS + 1, 99).lines) == 10


@pytest.mark.parametrize(("turns", "requests"), [(0, 1), (1, 2), (3, 2)])
def test_a_second_refusal_for_length_is_final(sessions: Sessions, turns: int, requests: int) -> None:
    fill(sessions, turns)
    with serving(refusal(400, "context_length_exceeded")) as server, pytest.raises(HarnessRefused, match="too long"):
        ask(server, sessions, turn())
    assert len(server.requests) == requests


def test_a_cancelled_turn_hangs_up_and_is_recorded_as_aborted(sessions: Sessions) -> None:
    async def cancelled(server: LoopbackServer) -> None:
        made = harness(server.url, sessions)
        task = asyncio.ensure_future(made.ask(turn(), ignore))
        await asyncio.to_thread(server.wait_for_requests, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(server.wait_for_hang_up)
        assert sessions.page("s", NOW_MS + 1, 9).lines == ()
        await made.cancel(turn(), None)

    with serving(broken("a", then="hold")) as server:
        asyncio.run(cancelled(server))
    (line,) = sessions.page("s", NOW_MS + 1, 9).lines
    assert (line.text, line.turn) == ("p1", "aborted")


def test_q86_history_tells_how_a_turn_ended(sessions: Sessions) -> None:
    sessions.append_turn("s", "x", "q", "a", NOW_MS - 5, NOW_MS - 1, "failed")
    page = asyncio.run(harness("http://127.0.0.1:1", sessions).history("s", NOW_MS, 100))
    assert [(line.role, line.turn, line.turn_started_ms, line.turn_ended_ms) for line in page.lines] == [
        ("assistant", "failed", NOW_MS - 5, NOW_MS - 1),
        ("user", "failed", NOW_MS - 5, NOW_MS - 1),
    ]


def test_without_its_sessions_nothing_is_asked() -> None:
    port = int(refused_url().rsplit(":", 1)[1].split("/")[0])
    lost = Sessions(redis.Redis(port=port, retry=Retry(NoBackoff(), 0)), SteppedClock(NOW_MS))
    with serving(completion("a")) as server:
        with pytest.raises(Transient, match="session store"):
            ask(server, lost, turn())
        with pytest.raises(Transient, match="session store"):
            asyncio.run(harness(server.url, lost).history("s", NOW_MS, 1))
        asyncio.run(harness(server.url, lost).cancel(turn(), None))
    assert server.connections == 0


def test_a_completion_never_asks(sessions: Sessions) -> None:
    with pytest.raises(HarnessRefused):
        asyncio.run(harness("http://127.0.0.1:1", sessions).answer(turn(), Question("q", "?"), "1", ignore))


def test_resuming_is_asking_again(sessions: Sessions) -> None:
    with serving(completion("a")) as server:
        made = harness(server.url, sessions)
        assert asyncio.run(made.resume(turn(), "", ignore)) == Answer((Part("text", "a"),))
