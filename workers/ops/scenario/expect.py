"""The expectations of a step against what came. Maps are subsets, null means absent (scenarios.md, `expect`). Pure."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from workers.ops.scenario.documents import duration_ms
from workers.ops.scenario.result import Failure, SentRow, StepResult

Check: TypeAlias = Callable[[Any, StepResult], "str | None"]
"""None when the expectation holds, otherwise what came, ready to print."""

SHOWN_MAX: Final = 600
"""Longest value that a failure prints, in characters: a prompt is seen whole, a captured event is not."""


def check(expect: Mapping[str, Any], result: StepResult) -> list[Failure]:
    """Every expectation that does not hold. Raises KeyError for a key that the table does not know."""
    failures: list[Failure] = []
    for key, expected in expect.items():
        came = CHECKS[key](expected, result)
        if came is not None:
            failures.append(Failure(key, show(expected), came))
    return failures


def show(value: object) -> str:
    """A value as a failure prints it."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"


def holds(expected: Any, came: Any) -> bool:
    """True when `came` has what is expected: a map is a subset, a list is equal item by item, null is absent."""
    if isinstance(expected, Mapping):
        return isinstance(came, Mapping) and all(holds(value, came.get(key)) for key, value in expected.items())
    if isinstance(expected, list | tuple):
        return (
            isinstance(came, list | tuple)
            and len(expected) == len(came)
            and all(holds(one, other) for one, other in zip(expected, came, strict=True))
        )
    if isinstance(expected, bool) or isinstance(came, bool):
        return expected is came
    return expected == came


def _value(read: Callable[[StepResult], Any]) -> Check:
    def verdict(expected: Any, result: StepResult) -> str | None:
        came = read(result)
        return None if holds(expected, came) else show(came)

    return verdict


def _contains(read: Callable[[StepResult], str]) -> Check:
    def verdict(expected: Sequence[str], result: StepResult) -> str | None:
        came = read(result)
        missing = [text for text in expected if text not in came]
        return f"without {show(missing)}: {show(came)}" if missing else None

    return verdict


def _lacks(read: Callable[[StepResult], str]) -> Check:
    """Says what was found, not where: a log must not be printed because it holds too much."""

    def verdict(expected: Sequence[str], result: StepResult) -> str | None:
        came = read(result)
        found = [text for text in expected if text in came]
        return f"with {show(found)}" if found else None

    return verdict


def _counts(read: Callable[[StepResult], Mapping[str, int]]) -> Check:
    """A count that nobody made is 0."""

    def verdict(expected: Mapping[str, int], result: StepResult) -> str | None:
        came = {key: read(result).get(key, 0) for key in expected}
        return None if came == dict(expected) else show(came)

    return verdict


def _last(inputs: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    return inputs[-1] if inputs else None


def _strings(value: Any) -> Iterator[str]:
    """Every value of a request as it is, not as JSON writes it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for below in value.values():
            yield from _strings(below)
    elif isinstance(value, list | tuple):
        for below in value:
            yield from _strings(below)
    elif value is not None:
        yield str(value)


def _whole(inputs: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(_strings(list(inputs)))


def _sent(expected: Sequence[Any], result: StepResult) -> str | None:
    fits = len(expected) == len(result.sent) and all(
        _row_holds(item, row) for item, row in zip(expected, result.sent, strict=True)
    )
    return None if fits else show([_row(row) for row in result.sent])


def _row_holds(expected: str | Mapping[str, Any], row: SentRow) -> bool:
    if isinstance(expected, str):
        return expected == row.text
    return (
        all(part in row.text for part in expected.get("contains", ()))
        and not any(part in row.text for part in expected.get("lacks", ()))
        and all(holds(value, _row(row).get(key)) for key, value in expected.items() if key not in ("contains", "lacks"))
    )


def _row(row: SentRow) -> dict[str, Any]:
    return {"text": row.text, "chat": row.chat, "thread": row.thread, "reply_to": row.reply_to}


def _registered(expected: int | Sequence[Any], result: StepResult) -> str | None:
    came = result.registered
    return None if holds(expected, len(came) if isinstance(expected, int) else came) else show(came)


def _found_in(
    read: Callable[[StepResult], Sequence[Mapping[str, Any]]],
) -> Callable[[Sequence[Any], StepResult], str | None]:
    def verdict(expected: Sequence[Any], result: StepResult) -> str | None:
        came = read(result)
        return None if all(any(holds(item, record) for record in came) for item in expected) else show(came)

    return verdict


def _dead(expected: Mapping[str, Any], result: StepResult) -> str | None:
    return _found_in(lambda r: r.dead)([expected], result)


def _elapsed_max(expected: str, result: StepResult) -> str | None:
    return None if result.elapsed_ms <= duration_ms(expected) else f"{result.elapsed_ms}ms"


CHECKS: Final[Mapping[str, Check]] = {
    "disposition": _value(lambda r: r.disposition),
    "reason": _value(lambda r: r.reason),
    "stage": _value(lambda r: r.stage),
    "normalised": _value(lambda r: r.normalised),
    "reply_block": _value(lambda r: r.reply_block),
    "prompt": _value(lambda r: r.prompt),
    "content": _value(lambda r: r.content),
    "prompt_contains": _contains(lambda r: r.prompt or ""),
    "prompt_lacks": _lacks(lambda r: r.prompt or ""),
    "system_contains": _contains(lambda r: "\n\n".join(r.system)),
    "system_lacks": _lacks(lambda r: "\n\n".join(r.system)),
    "sent": _sent,
    "sent_count": _value(lambda r: len(r.sent)),
    "calls": _counts(lambda r: r.calls),
    "turns": _value(lambda r: r.turns),
    "dispositions": _counts(lambda r: r.dispositions),
    "judge_input": _value(lambda r: _last(r.judge_inputs)),
    "judge_input_lacks": _lacks(lambda r: _whole(r.judge_inputs)),
    "harness_input": _value(lambda r: _last(r.harness_inputs)),
    "harness_input_lacks": _lacks(lambda r: _whole(r.harness_inputs)),
    "interaction_answer": _value(lambda r: r.interaction_answer),
    "audit": _found_in(lambda r: r.audit),
    "registered": _registered,
    "gate": _value(lambda r: {"state": r.gate}),
    "index_size": _counts(lambda r: r.index_size),
    "warnings": _value(lambda r: r.warnings),
    "log_lacks": _lacks(lambda r: r.log_text),
    "dead": _dead,
    "order": _value(lambda r: r.order),
    "elapsed_max": _elapsed_max,
    "http": _value(lambda r: r.http),
    "status": _value(lambda r: r.status),
    "exit": _value(lambda r: r.exit),
    "json": _value(lambda r: r.json),
    "output_contains": _contains(lambda r: r.output),
}
