"""Commands as steps of a scenario: they work on the scenario's own world, and their JSON can be expected."""

from pathlib import Path

from workers.ops.scenario.run import run_paths

SCENARIO = """
name: an operator looks and acts while messages come
config:
  accounts: [{id: tg, channel: telegram, owners: ["1"]}]
harness: {replies: [{error: permanent}, fine]}
steps:
  - say: {account: tg, chat: "7", sender: "7", text: hello}
    expect: {disposition: dead, reason: harness-refused}
  - cli: {args: [dead, list, --json]}
    expect: {exit: 0, json: [{stage: dispatch, reason: harness-refused}]}
  - cli: {args: [status, --json]}
    expect: {exit: 0, json: {dead: {dispatch: 1}, switches: {read_only: false}}}
  - cli: {args: [trace, nobody, --json]}
    expect: {exit: 1, output_contains: [nothing is kept of nobody]}
  - cli: {args: [switch, read-only, "on"]}
    expect: {exit: 0, output_contains: [read-only is on]}
  - say: {account: tg, chat: "7", sender: "7", text: again}
    expect: {disposition: skipped, reason: read-only-mode}
  - cli: {args: [access, block, tg, "7"]}
    expect: {exit: 0, audit: [{type: access, reason: block, account: tg}]}
  - cli: {args: [config, show, --json]}
    expect: {exit: 0, json: {version: 1}}
  - cli: {args: [dead, show, nope]}
    expect: {exit: 1, output_contains: [no dead letter nope]}
  - cli: {args: [worker, nope]}
    expect: {exit: 2}
"""


def test_an_operators_commands_are_steps_of_a_scenario(tmp_path: Path) -> None:
    file = tmp_path / "operator.yaml"
    file.write_text(SCENARIO, encoding="utf-8")
    [result] = run_paths([file])
    assert result.ok, [f for step in result.steps for f in step.failures] or result.problem
