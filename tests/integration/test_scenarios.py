"""The scenarios of `tests/scenarios` hold, one test a document; and the driver would notice if one did not."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shared.redis.client import Redis, connect
from shared.redis.embedded import Embedded, available_kinds
from workers.ops.cli import app
from workers.ops.scenario.format import load
from workers.ops.scenario.model import Scenario
from workers.ops.scenario.report import failure_lines
from workers.ops.scenario.run import run_one, run_paths

FOLDER = Path(__file__).parents[1] / "scenarios"
SCENARIOS = load([FOLDER])


REAL = [kind for kind in available_kinds() if kind != "fakeredis"]


@pytest.fixture(scope="module", params=REAL)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """Redis and Valkey, whichever are there."""
    with Embedded.start(tmp_path_factory.mktemp("server"), durable=False, kinds=(request.param,)) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Embedded) -> Iterator[Redis]:
    made = connect(server.url)
    yield made
    made.close()


def id_of(scenario: Scenario) -> str:
    return f"{Path(scenario.file).stem}: {scenario.name}"


@pytest.mark.parametrize("scenario", SCENARIOS, ids=id_of)
def test_the_scenario_holds(scenario: Scenario, server: Embedded, client: Redis) -> None:
    result = run_one(scenario, client, server.url)
    assert result.ok, "\n".join(failure_lines(result))


RIGHT = """\
name: an answer
config: {accounts: [{id: tg, channel: telegram, self_id: "8001"}]}
steps:
  - advance: 1s
  - say: {account: tg, chat: "3", sender: "3", text: hello}
    expect:
      disposition: answered
      sent: [hello]
      calls: {harness: 1, send: 1}
"""


@pytest.mark.parametrize(
    ("right", "wrong", "line"),
    [
        ("disposition: answered", "disposition: silenced", 'disposition: expected "silenced", came "answered"'),
        ("sent: [hello]", "sent: [other]", 'sent: expected ["other"], came '),
        ("harness: 1", "harness: 2", 'calls: expected {"harness": 2, "send": 1}, came {"harness": 1, "send": 1}'),
    ],
)
def test_an_expectation_that_does_not_hold_is_told_by_scenario_step_expected_and_came(
    tmp_path: Path, right: str, wrong: str, line: str
) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(RIGHT.replace(right, wrong), encoding="utf-8")
    (result,) = run_paths([path])
    (told,) = failure_lines(result)
    assert told.startswith(f"{path}: an answer: step 2 (line 5): {line}")


@pytest.mark.parametrize(
    ("text", "status", "told"),
    [
        pytest.param(RIGHT, 0, "1 held", id="all held"),
        pytest.param(RIGHT.replace("answered", "dead"), 1, "0 held, 1 failed", id="one failed"),
        pytest.param(RIGHT.replace("steps:", "step:"), 2, "scenario.yaml", id="malformed"),
    ],
)
def test_the_exit_status_is_0_1_or_2(tmp_path: Path, text: str, status: int, told: str) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(text, encoding="utf-8")
    result = CliRunner().invoke(app, ["scenario", str(path)])
    assert (result.exit_code, told in result.output) == (status, True), result.output
