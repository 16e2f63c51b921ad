"""What a run prints, how it ends, and what is refused because it is not built."""

import json
from pathlib import Path

import pytest

from workers.ops.scenario.format import load, load_text
from workers.ops.scenario.model import Scenario
from workers.ops.scenario.report import FAILED, HELD, exit_status, failure_lines, json_lines, selected, summary
from workers.ops.scenario.result import Failure, ScenarioResult, StepResult
from workers.ops.scenario.unbuilt import unbuilt

BUILT = frozenset({"telegram", "slack", "mock"})
SAY = "say: {account: tg, chat: c, sender: s, text: 你好}"
WRITTEN = Path(__file__).parents[4] / "scenarios"


def scenario(steps: str = SAY, more: str = "", account: str = "", channel: str = "telegram") -> Scenario:
    config = f"{{accounts: [{{id: tg, channel: {channel}{account}}}]}}"
    return load_text(f"name: first\nref: Q-1\nconfig: {config}\n{more}\nsteps:\n  - {steps}\n", "f.yaml")[0]


def failed() -> ScenarioResult:
    return ScenarioResult(scenario(), (StepResult(failures=[Failure("disposition", '"answered"', "null")]),))


def test_a_failure_names_scenario_step_expectation_and_what_came() -> None:
    assert list(failure_lines(failed())) == [
        'f.yaml: first: step 1 (line 6): disposition: expected "answered", came null'
    ]
    assert list(failure_lines(ScenarioResult(scenario(), (StepResult(),)))) == []


def test_a_scenario_that_was_not_run_says_why() -> None:
    result = ScenarioResult(scenario(), problem="not built yet: the judge")
    assert not result.ok
    assert list(failure_lines(result)) == ["f.yaml: first: not built yet: the judge"]


def test_exit_status_and_summary() -> None:
    held = ScenarioResult(scenario(), (StepResult(),))
    assert (exit_status([held]), summary([held])) == (HELD, "1 held")
    assert (exit_status([held, failed()]), summary([held, failed()])) == (FAILED, "1 held, 1 failed")


def test_one_json_object_a_scenario() -> None:
    (line,) = json_lines([failed()])
    shown = json.loads(line)
    assert list(shown) == ["file", "name", "ref", "ok", "steps"]
    assert (shown["file"], shown["name"], shown["ref"], shown["ok"]) == ("f.yaml", "first", "Q-1", False)
    assert shown["steps"][0]["failures"] == ['disposition: expected "answered", came null']


def test_selection_by_name_or_ref() -> None:
    one = scenario()
    assert selected([one], "irs") == [one]
    assert selected([one], "Q-1") == [one]
    assert selected([one], "") == [one]
    assert selected([one], "other") == []


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (scenario(channel="weixin"), "the channel weixin"),
        (scenario("send: {account: tg, chat: c, text: x}"), "proactive messages"),
        (scenario("approve: {draft: last}"), "drafts"),
        (scenario(account=", send_mode: confirm"), "drafts"),
        (scenario("http: {method: GET, path: /status}"), "the admin API"),
        (scenario(more="judge: {verdicts: [{respond: true}]}"), "the judge"),
        (scenario(account=", engagement: {engine: true}"), "the engagement engine"),
        (scenario(more="harness: {replies: [{approval: {text: x}}]}"), "questions and approvals"),
        (scenario("say: {account: tg, chat: c, sender: s, text: '/batch@bot now'}"), "the commands"),
        (scenario("say: {account: tg, chat: c, sender: s, ocr: {score: 0.5}}"), "recognised text"),
        (scenario(account=", join_s: 1.5"), "joining"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_not_built_is_named(asked: Scenario, named: str) -> None:
    (sentence,) = unbuilt(asked, BUILT)
    assert sentence.startswith(f"not built yet: {named}")


def test_what_is_built_is_not_refused() -> None:
    assert unbuilt(scenario(account=", join_s: 0, engagement: {engine: false}"), BUILT) == []


def test_the_scenarios_of_the_suite_are_well_formed_and_wholly_built() -> None:
    written = load([WRITTEN])
    assert written
    assert {one.name: unbuilt(one, BUILT) for one in written if unbuilt(one, BUILT)} == {}
