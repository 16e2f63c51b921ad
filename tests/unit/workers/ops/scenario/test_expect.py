"""Every key of `expect`: one expectation that holds, one that fails."""

from typing import Any

import pytest

from shared.prompt import Source, render
from shared.reply import reference_from_parts
from workers.ops.scenario.expect import CHECKS, check, holds
from workers.ops.scenario.format import schema
from workers.ops.scenario.result import Failure, SentRow, StepResult

PROMPT = render(
    Source("telegram", "group", "3"), reference_from_parts({"message_id": "5", "content": "旧话"}), "你好", ()
)
RESULT = StepResult(
    disposition="answered",
    reason="rule.addressed",
    stage="delivery",
    normalised={
        "text": "你好",
        "reply_to": {"message_id": "5", "content": "旧话", "author_id": None},
        "attachments": [],
    },
    prompt=PROMPT,
    system=("persona", "public"),
    sent=[SentRow("好的", "-100", thread="31", reply_to="77"), SentRow("再见", "-100")],
    calls={"harness": 1, "send": 2},
    turns=1,
    order=["一", "二"],
    dispositions={"answered": 2, "silenced": 1},
    registered=[{"text": "嗯", "label": "小明"}],
    gate="cooldown",
    index_size={"wx": 2},
    warnings=1,
    log_text='{"event": "quote", "reason": "none"}',
    audit=[{"type": "skip", "reason": "read-only-mode", "at_ms": 1}],
    dead=[{"stage": "dispatch", "reason": "harness-refused", "id": "x"}],
    harness_inputs=[{"text": "first"}, {"text": 'a\n"b"', "attempt": 1, "reply_to": None, "context": []}],
    judge_inputs=[{"text": "在吗", "engage": True, "role": "guest"}],
    interaction_answer="稍后",
    exit=0,
    json={"letters": [{"stage": "dispatch", "id": "x"}], "count": 1},
    output="one letter",
    status=409,
    http=401,
    elapsed_ms=5_500,
)

CASES: list[tuple[str, Any, Any]] = [
    ("disposition", "answered", "silenced"),
    ("reason", "rule.addressed", "no_signal"),
    ("stage", "delivery", "dispatch"),
    ("normalised", {"text": "你好", "thread_id": None}, {"text": "您好"}),
    ("normalised", {"reply_to": {"author_id": None, "content": "旧话"}}, {"reply_to": None}),
    ("normalised", {"attachments": []}, {"attachments": [{"kind": "file"}]}),
    ("reply_block", {"messageId": "5", "authorId": None, "truncated": False}, None),
    ("reply_block", {"attachments": []}, {"truncated": 0}),
    ("prompt", PROMPT, PROMPT + "\n"),
    ("content", PROMPT.split("\n\n", 1)[1], "你好"),
    ("prompt_contains", ["旧话", "你好"], ["旧话", "别的"]),
    ("prompt_lacks", ["别的"], ["别的", "旧话"]),
    ("system_contains", ["persona", "public"], ["private"]),
    ("system_lacks", ["旧话"], ["persona"]),
    ("sent", ["好的", "再见"], ["好的"]),
    ("sent", [{"text": "好的", "reply_to": "77", "chat": "-100", "thread": "31"}, "再见"], ["再见", "好的"]),
    ("sent", [{"contains": ["好"], "lacks": ["坏"]}, {"reply_to": None, "thread": None}], [{"lacks": ["好"]}, "再见"]),
    ("sent", ["好的", {"chat": "-100"}], [{"reply_to": None}, "再见"]),
    ("sent_count", 2, 0),
    ("calls", {"harness": 1, "lookup": 0}, {"harness": 0}),
    ("turns", 1, 0),
    ("dispositions", {"answered": 2, "dead": 0}, {"answered": 3}),
    ("judge_input", {"engage": True, "context": None}, {"engage": False}),
    ("judge_input_lacks", ["persona"], ["在吗"]),
    ("harness_input", {"attempt": 1, "reply_to": None}, {"text": "first"}),
    ("harness_input_lacks", ["secret"], ['"b"']),
    ("harness_input_lacks", ["x"], ["first"]),
    ("interaction_answer", "稍后", "1"),
    ("audit", [{"type": "skip"}, {"reason": "read-only-mode"}], [{"type": "config"}]),
    ("registered", 1, 0),
    ("registered", [{"text": "嗯", "label": "小明"}], [{"text": "嗯", "label": ""}]),
    ("gate", {"state": "cooldown"}, {"state": "idle"}),
    ("index_size", {"wx": 2, "tg": 0}, {"wx": 1}),
    ("warnings", 1, 0),
    ("log_lacks", ["你好"], ["none"]),
    ("dead", {"stage": "dispatch"}, {"stage": "dispatch", "reason": "turn-timeout"}),
    ("order", ["一", "二"], ["二", "一"]),
    ("elapsed_max", "5.5s", "5499ms"),
    ("exit", 0, 1),
    ("json", {"letters": [{"stage": "dispatch"}]}, {"count": 2}),
    ("output_contains", ["letter"], ["letters"]),
    ("status", 409, 200),
    ("http", 401, 200),
]  # fmt: skip


@pytest.mark.parametrize(("key", "right", "wrong"), CASES, ids=[f"{n}-{case[0]}" for n, case in enumerate(CASES)])
def test_a_key_holds_and_fails(key: str, right: Any, wrong: Any) -> None:
    assert check({key: right}, RESULT) == []
    (failure,) = check({key: wrong}, RESULT)
    assert failure.key == key
    assert failure.came


def test_every_key_of_the_schema_is_checked_and_tested() -> None:
    assert set(CHECKS) == set(schema()["$defs"]["expect"]["properties"])
    assert {case[0] for case in CASES} == set(CHECKS)


def test_nothing_happened() -> None:
    absent = {
        "sent": [], "sent_count": 0, "turns": 0, "registered": 0, "warnings": 0, "reply_block": None,
        "prompt_lacks": ["x"], "system_lacks": ["x"], "harness_input_lacks": ["x"], "calls": {"harness": 0, "judge": 0},
        "index_size": {"tg": 0}, "elapsed_max": "0s",
    }  # fmt: skip
    assert check(absent, StepResult()) == []
    present = {
        "disposition": "answered", "normalised": {"text": None}, "prompt_contains": ["x"], "content": "x",
        "gate": {"state": "idle"}, "dead": {"stage": "dispatch"}, "audit": [{"type": "skip"}],
        "harness_input": {"reply_to": None},
    }  # fmt: skip
    assert [failure.key for failure in check(present, StepResult())] == list(present)


def test_a_truth_value_is_not_a_number() -> None:
    assert not holds(True, 1)
    assert not holds(0, False)
    assert holds(1, 1.0)


def test_a_failure_says_what_was_expected_and_what_came() -> None:
    assert check({"disposition": "silenced"}, RESULT) == [Failure("disposition", '"silenced"', '"answered"')]


def test_a_log_that_holds_too_much_is_not_printed() -> None:
    assert check({"log_lacks": ["none"]}, RESULT) == [Failure("log_lacks", '["none"]', 'with ["none"]')]


def test_a_step_as_json() -> None:
    shown = RESULT.to_json()
    assert list(shown) == [
        "disposition", "reason", "stage", "normalised", "prompt", "system", "reply_block", "sent", "calls", "failures",
    ]  # fmt: skip
    assert shown["sent"][0] == {"text": "好的", "reply_to": "77", "chat": "-100", "thread": "31"}
    assert shown["reply_block"]["content"] == "旧话"
