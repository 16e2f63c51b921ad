"""Scripted platforms and harness: what the document says, on the scenario's clock."""

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

import pytest

from shared.channels.port import PlatformResponse
from shared.errors import EffectUnknown, Malformed, Transient
from shared.harness.port import ContextRow, HarnessRefused, Question, Turn, TurnAttachment
from shared.settings import from_mapping
from shared.settings_scenario import scenario_mapping
from workers.ops.scenario.model import GivenLine, HarnessReply, HarnessScript, PlatformAnswer
from workers.ops.scenario.result import Failure, SentRow
from workers.ops.scenario.scripted import ScriptedHarness, ScriptedPlatforms, input_of, with_credentials

T = TypeVar("T")


class StepClock:
    """A clock that only moves when somebody waits."""

    def __init__(self, now_ms: int = 1_000_000) -> None:
        self.now = now_ms

    def now_ms(self) -> int:
        return self.now

    def monotonic(self) -> float:
        return self.now / 1000

    async def sleep(self, seconds: float) -> None:
        self.now += round(seconds * 1000)

    async def wait_for(self, work: Awaitable[T], seconds: float) -> T:
        del seconds
        return await work


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def platforms(*answers: PlatformAnswer) -> tuple[ScriptedPlatforms, StepClock]:
    clock = StepClock()
    return ScriptedPlatforms(answers, clock), clock


def ask(
    world: ScriptedPlatforms, call: Any, ref: str = "", body: Any = None, channel: str = "telegram"
) -> PlatformResponse:
    api = world.api("tg", channel)
    return run(api.request(call, "POST", "https://x.invalid", ref=ref, json=body, timeout_s=5.0))


def test_the_first_match_by_account_call_and_id_wins() -> None:
    world, _ = platforms(
        PlatformAnswer("other", "get_message", returns={"n": 0}, has_returns=True),
        PlatformAnswer("tg", "get_message", id="2", returns={"n": 1}, has_returns=True),
        PlatformAnswer("tg", "get_message", returns={"n": 2}, has_returns=True),
        PlatformAnswer("tg", "get_message", id="2", returns={"n": 3}, has_returns=True),
    )
    assert ask(world, "get_message", "2").json() == {"n": 1}
    assert ask(world, "get_message", "9").json() == {"n": 2}
    assert world.calls == {"lookup": 2}
    assert world.failures == []


def test_times_limits_an_answer() -> None:
    world, _ = platforms(
        PlatformAnswer("tg", "verify", status=503, times=1),
        PlatformAnswer("tg", "verify", returns="raw", has_returns=True),
    )
    assert ask(world, "verify").status == 503
    assert ask(world, "verify").body == b"raw"
    assert ask(world, "verify").body == b"raw"
    assert world.calls == {"verify": 3}


def test_an_unmatched_call_fails_the_step_a_send_succeeds() -> None:
    world, _ = platforms()
    with pytest.raises(EffectUnknown):
        ask(world, "get_message", "5")
    assert world.failures == [Failure("platform", "no call without an answer", "tg get_message 5")]
    world.next_step()
    first = ask(world, "send", body={"chat_id": 1, "text": "a"}).json()["result"]["message_id"]
    second = ask(world, "send", body={"chat_id": 1, "text": "b"}).json()["result"]["message_id"]
    assert second > first
    assert world.failures == []
    assert [row.text for row in world.sent] == ["a", "b"]


@pytest.mark.parametrize(
    ("error", "raised", "waited_ms"),
    [("refused", Transient, 0), ("timeout", EffectUnknown, 5_000), ("connection", EffectUnknown, 0)],
)
def test_errors_are_those_of_the_port(error: Any, raised: type[Exception], waited_ms: int) -> None:
    world, clock = platforms(PlatformAnswer("tg", "send", error=error))
    before = clock.now
    with pytest.raises(raised):
        ask(world, "send", body={"text": "x"})
    assert clock.now - before == waited_ms
    assert (world.sent, world.calls) == ([], {"send": 1})


def test_an_invalid_answer_is_no_json() -> None:
    world, _ = platforms(PlatformAnswer("tg", "send", error="invalid"))
    with pytest.raises(Malformed):
        ask(world, "send", body={"text": "x"}).json()
    assert world.sent == []


def test_a_status_comes_in_the_platforms_shape() -> None:
    world, _ = platforms(PlatformAnswer("tg", "send", status=429, retry_after_ms=3_000))
    limited = ask(world, "send", body={"text": "x"})
    assert (limited.status, limited.headers["retry-after"]) == (429, "3")
    assert limited.json()["parameters"] == {"retry_after": 3.0}
    assert ask(world, "send", body={}, channel="slack").json() == {"ok": False, "error": "ratelimited"}
    assert world.sent == []


def test_a_send_that_the_platform_refuses_in_its_body_was_not_sent() -> None:
    world, _ = platforms(PlatformAnswer("tg", "send", returns={"ok": False, "error": "x"}, has_returns=True))
    ask(world, "send", body={"text": "x"}, channel="slack")
    assert world.sent == []


def test_a_sent_row_is_read_from_each_platforms_own_request() -> None:
    world, _ = platforms()
    ask(
        world,
        "send",
        body={"chat_id": "-100", "text": "a", "message_thread_id": 31, "reply_parameters": {"message_id": 77}},
    )
    ask(world, "send", body={"channel": "C", "text": "a &amp; b", "thread_ts": "1.2"}, channel="slack")
    ask(world, "send", body={"chat": "c", "text": "a", "reply_to": "5"}, channel="mock")
    assert world.sent == [
        SentRow("a", "-100", "31", "77", "tg"),
        SentRow("a & b", "C", "1.2", "1.2", "tg"),
        SentRow("a", "c", None, "5", "tg"),
    ]


def test_every_account_can_make_its_requests_and_keeps_what_it_wrote() -> None:
    config = {
        "accounts": [
            {"id": "tg", "channel": "telegram", "credentials": {"secret": "s"}},
            {"id": "sl", "channel": "slack", "credentials": {"token": "own"}},
            {"id": "mk", "channel": "mock"},
        ]
    }
    settings = from_mapping(scenario_mapping(with_credentials(config)))
    tg, sl, mk = settings.accounts
    assert (tg.credential("token"), tg.credential("secret")) == ("scenario", "s")
    assert sl.credential("token") == "own"
    assert mk.credential("callback_url")
    assert with_credentials({}) == {}


def turn(text: str = "你好", turn_id: str = "t1", attempt: int = 1) -> Turn:
    return Turn(
        id=turn_id,
        session="s",
        system=("p",),
        prompt=f"<>{text}",
        text=text,
        source={"channel": "mock"},
        attempt=attempt,
    )


def harness(*replies: HarnessReply, delay_ms: int = 0) -> tuple[ScriptedHarness, StepClock]:
    clock = StepClock()
    return ScriptedHarness(HarnessScript(replies or (HarnessReply(),), delay_ms), clock, idempotent=True), clock


def text_of(backend: ScriptedHarness, asked: Turn) -> str:
    return "".join(part.text for part in run(backend.ask(asked, lambda _: None)).parts)


def test_replies_come_in_order_and_the_last_repeats() -> None:
    backend, _ = harness(HarnessReply("a"), HarnessReply("b"))
    assert [text_of(backend, turn()) for _ in range(3)] == ["a", "b", "b"]


def test_without_a_script_the_current_text_is_echoed() -> None:
    backend, _ = harness()
    assert text_of(backend, turn()) == "你好"
    assert text_of(backend, turn("")) == ""


def test_a_delay_passes_on_the_clock() -> None:
    backend, clock = harness(HarnessReply("x", delay_ms=30_000))
    before = clock.now
    assert text_of(backend, turn()) == "x"
    assert clock.now - before == 30_000


def test_errors_of_the_harness() -> None:
    backend, _ = harness(HarnessReply(error="transient"), HarnessReply(error="permanent"))
    with pytest.raises(Transient):
        text_of(backend, turn())
    with pytest.raises(HarnessRefused):
        text_of(backend, turn(attempt=2))
    assert [(one.id, one.attempt) for one in backend.inputs] == [("t1", 1), ("t1", 2)]


def test_a_turn_starts_once_and_is_called_as_often_as_it_is() -> None:
    backend, _ = harness(HarnessReply("x"))
    text_of(backend, turn())
    backend.next_step()
    text_of(backend, turn(attempt=2))
    run(backend.resume(turn(), "https://x.invalid/1", lambda _: None))
    text_of(backend, turn("二", "t2"))
    assert len(backend.inputs) == 3
    assert [one.text for one in backend.started] == ["二"]


def test_a_question_and_its_answer() -> None:
    backend, _ = harness(HarnessReply(question="现在？", options=("现在", "稍后")), HarnessReply("好的"))
    answer = run(backend.ask(turn(), lambda _: None))
    assert answer.question == Question("t1-1", "现在？", ("现在", "稍后"))
    rest = run(backend.answer(turn(), answer.question, "稍后", lambda _: None))
    assert rest.parts[0].text == "好的"
    assert backend.answered == ["稍后"]


def test_history_comes_newest_first_in_pages_after_its_delay() -> None:
    backend, clock = harness(delay_ms=10_000)
    backend.remember(
        "s",
        [
            GivenLine("user", "问", 100),
            GivenLine("assistant", "半", 150, "failed"),
            GivenLine("user", "再问", 200),
            GivenLine("assistant", "先", 250),
            GivenLine("assistant", "答", 300),
        ],
    )
    before = clock.now
    page = run(backend.history("s", before_ms=300, limit=2))
    assert clock.now - before == 10_000
    assert [line.text for line in page.lines] == ["先", "再问"]
    assert page.more
    (newest,) = run(backend.history("s", before_ms=301, limit=1)).lines
    assert (newest.text, newest.turn_started_ms, newest.turn_ended_ms, newest.last_of_turn) == ("答", 200, 300, True)
    assert not page.lines[0].last_of_turn
    assert backend.history_reads == 2
    assert run(backend.history("unknown", 1, 1)).lines == ()


def test_a_completed_turn_is_in_the_history() -> None:
    backend, clock = harness(HarnessReply("好的", delay_ms=1_000))
    text_of(backend, turn())
    answer, question = run(backend.history("s", clock.now + 1, 10)).lines
    assert (question.text, answer.text, answer.at_ms - question.at_ms) == ("你好", "好的", 1_000)


def test_a_turn_under_the_names_of_the_format() -> None:
    asked = Turn(
        id="t", session="s", system=("p",), prompt="P", text="x", source={"channel": "mock"},
        reply_to={"message_id": "5"}, attachments=(TurnAttachment("image", None),),
        context=(ContextRow("小明", "嗯", 1),), title="x",
    )  # fmt: skip
    assert input_of(asked) == {
        "turn_id": "t", "session": "s", "text": "x", "reply_to": {"message_id": "5"}, "source": {"channel": "mock"},
        "context": [{"label": "小明", "text": "嗯", "at_ms": 1}], "title": "x", "attempt": 1, "prompt": "P",
        "system": ["p"], "attachments": [{"kind": "image", "name": None, "unavailable": None}],
    }  # fmt: skip
