"""What a run of scenarios prints, and its exit status: 0 all held, 1 one failed, 2 a file is malformed."""

from collections.abc import Iterator, Sequence

from workers.ops.scenario.model import Scenario
from workers.ops.scenario.result import ScenarioResult

HELD, FAILED, MALFORMED = 0, 1, 2


def selected(scenarios: Sequence[Scenario], text: str) -> list[Scenario]:
    """The scenarios whose name or ref contains `text` (`-k`); all of them for an empty one."""
    return [scenario for scenario in scenarios if text in scenario.name or text in scenario.ref]


def failure_lines(result: ScenarioResult) -> Iterator[str]:
    """One line for each expectation that did not hold; none when all did."""
    scenario = result.scenario
    place = f"{scenario.file}: {scenario.name}"
    if result.problem:
        yield f"{place}: {result.problem}"
    for step, came in zip(scenario.steps, result.steps, strict=False):
        at = f" (line {step.line})" if step.line is not None else ""
        for failure in came.failures:
            yield f"{place}: step {step.number}{at}: {failure.key}: expected {failure.expected}, came {failure.came}"


def json_lines(results: Sequence[ScenarioResult]) -> Iterator[str]:
    """One JSON object a scenario, in the order given (`--json`)."""
    for result in results:
        yield result.to_json()


def summary(results: Sequence[ScenarioResult]) -> str:
    """The last line for a reader."""
    failed = sum(not result.ok for result in results)
    held = len(results) - failed
    return f"{held} held, {failed} failed" if failed else f"{held} held"


def exit_status(results: Sequence[ScenarioResult]) -> int:
    """0 when all held, 1 when one failed. Files that are malformed end with MALFORMED before anything runs."""
    return HELD if all(result.ok for result in results) else FAILED
