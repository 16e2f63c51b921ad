"""Scenario files: what is read, and what is refused with file, line and reason."""

from pathlib import Path

import pytest

from workers.ops.scenario.format import ACTIONS, ScenarioError, load, load_file, load_text, schema
from workers.ops.scenario.model import (
    START_MS,
    Advance,
    At,
    Burst,
    Cli,
    Fault,
    HarnessReply,
    Http,
    PlatformAnswer,
    Receive,
    Redeliver,
    Reject,
    Replay,
    Restart,
    SaidQuote,
    Say,
    Scenario,
    Send,
    Set,
)

HEAD = """\
name: n
config: {accounts: [{id: tg, channel: telegram}]}
"""
SAY = "{account: tg, chat: c, sender: s, text: hi}"


def errors(text: str) -> tuple[str, ...]:
    with pytest.raises(ScenarioError) as caught:
        load_text(text, "f.yaml")
    return caught.value.errors


def one(text: str) -> Scenario:
    (scenario,) = load_text(text, "f.yaml")
    return scenario


def test_every_kind_of_step_and_every_time_becomes_a_value() -> None:
    scenario = one(
        HEAD
        + f"""\
now: 2026-09-01T00:00:00Z
steps:
  - say: {{account: tg, chat: c, sender: s, sent: -40s, reply_to: {{message_id: "5", sent_at: +0.5m, keys: [k]}}}}
  - receive: {{account: tg, event: {{n: 1}}, headers: {{X-A: "1"}}}}
    at: +2s
  - receive: {{account: tg, raw: body, headers: {{}}}}
    at: 2026-09-01T00:01:00+00:00
  - redeliver: {{step: 2, as: platform}}
  - fault: {{at: quotes.after_freeze}}
  - burst: [{SAY}, {SAY}]
  - send: {{account: tg, chat: c, text: x}}
  - restart: all
  - cli: {{args: [dead, list]}}
  - http: {{method: GET, path: /status}}
  - set: {{read_only: true, accounts: [{{id: tg, members: ["2"]}}]}}
  - replay: {{filter: {{stage: dispatch}}}}
  - reject: {{draft: last}}
  - advance: 61s
    expect: {{sent: []}}
"""
    )
    start = 1_788_220_800_000
    assert scenario.now_ms == start
    said = Say(account="tg", chat="c", sender="s", text="hi")
    assert [step.action for step in scenario.steps] == [
        Say("tg", "c", "s", reply_to=SaidQuote({"message_id": "5"}, start + 30_000, ("k",)), sent_ms=start - 40_000),
        Receive("tg", {"n": 1}, {"X-A": "1"}),
        Receive("tg", None, {}, "body"),
        Redeliver(2, "platform"),
        Fault("quotes.after_freeze"),
        Burst((said, said)),
        Send("tg", "c", "x"),
        Restart("all"),
        Cli(("dead", "list")),
        Http("GET", "/status"),
        Set({"read_only": True}, ({"id": "tg", "members": ["2"]},)),
        Replay({"stage": "dispatch"}),
        Reject("last"),
        Advance(61_000),
    ]
    assert [step.number for step in scenario.steps] == list(range(1, 15))
    assert scenario.steps[1].at == At(offset_ms=2_000)
    assert scenario.steps[2].at == At(time_ms=start + 60_000)
    assert scenario.steps[13].at == At(offset_ms=61_000)
    assert scenario.steps[13].expect == {"sent": []}
    assert scenario.steps[0].line == 5


def test_defaults_are_those_of_the_format() -> None:
    scenario = one(HEAD + f"steps: [say: {SAY}]")
    assert (scenario.now_ms, scenario.random, scenario.verdicts) == (START_MS, (0.99,), None)
    assert scenario.harness.replies == (HarnessReply(),)
    assert (scenario.ref, scenario.config_error) == ("", ())


def test_platform_and_harness_scripts() -> None:
    scenario = one(
        HEAD
        + f"""\
platform:
  - {{account: tg, call: send, status: 429, retry_after: 3s, times: 2}}
  - {{account: tg, call: get_message, id: "1", returns: null}}
harness:
  replies:
    [好的, {{text: x, delay: 30s}}, {{error: transient}}, {{question: {{text: q, options: [a]}}}},
      {{approval: {{text: y}}}}]
  history_delay: 10s
steps: [say: {SAY}]
"""
    )
    assert scenario.platform == (
        PlatformAnswer("tg", "send", status=429, retry_after_ms=3_000, times=2),
        PlatformAnswer("tg", "get_message", id="1", has_returns=True),
    )
    assert scenario.harness.history_delay_ms == 10_000
    assert scenario.harness.replies == (
        HarnessReply("好的"),
        HarnessReply("x", delay_ms=30_000),
        HarnessReply(error="transient"),
        HarnessReply(question="q", options=("a",)),
        HarnessReply(question="y", approval=True),
    )


def test_yaml_is_read_by_its_core_schema() -> None:
    scenario = one(
        HEAD
        + """\
steps:
  - receive:
      account: tg
      event: {a: yes, b: on, c: 2026-09-01, d: 010, e: 0x1F, f: 12:30:00, g: 1e3, h: ~, i: True, j: <<}
"""
    )
    action = scenario.steps[0].action
    assert isinstance(action, Receive)
    assert action.event == {
        "a": "yes", "b": "on", "c": "2026-09-01", "d": 10, "e": "0x1F", "f": "12:30:00", "g": 1000.0, "h": None,
        "i": True, "j": "<<",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", ": no document"),
        ("a: [", ":1: expected the node content, but found '<stream end>'"),
        ("name: n\nname: m\n", ":2: the key 'name' comes twice"),
        ("1: x\n", ":1: the key 1 is not text: put it into quotes"),
        ("- 1\n", ":1: document 1: (document): [1] is not of type 'object'"),
        (
            HEAD + f"steps:\n  - say: {SAY}\n    expct: {{}}\n",
            ":4: document 1: steps[0]: Additional properties are not allowed ('expct' was unexpected)",
        ),
        (
            HEAD + "steps:\n  - say: {account: tg, chat: 5, sender: s}\n",
            ":4: document 1: steps[0].say.chat: 5 is not of type 'string'",
        ),
        (
            HEAD + "steps:\n  - advance: soon\n",
            ":4: document 1: steps[0].advance: 'soon' is not written as in '61s, 0.5s'",
        ),
        (
            HEAD + f"steps: [say: {SAY}]\n---\n" + HEAD + f"steps: [say: {SAY}]\n",
            ":5: document 2: name: also the name of document 1",
        ),
        (
            HEAD + "steps: [say: {account: xx, chat: c, sender: s}]",
            ":3: document 1: steps[0].say.account: the account 'xx' is not in config.accounts",
        ),
        (
            HEAD + "steps: [send: {account: xx, chat: c, text: s}]",
            ":3: document 1: steps[0].send.account: the account 'xx' is not in config.accounts",
        ),
        (
            HEAD + f"steps: [say: {SAY}, redeliver: {{step: 2, as: broker}}]",
            ":3: document 1: steps[1].redeliver.step: step 2 is not an earlier say or receive",
        ),
        (
            HEAD + f"steps: [say: {SAY}, fault: {{at: dispatch.after_start}}]",
            ":3: document 1: steps[1].fault: no step follows in which it could happen",
        ),
        (
            HEAD + f"steps:\n  - say: {SAY}\n    at: 2026-02-30T00:00:00Z\n",
            ":5: document 1: steps[0].at: '2026-02-30T00:00:00Z' is no time: day is out of range for month",
        ),
        (
            HEAD + f"steps: [say: {SAY}]\nconfig_error: []\n",
            ":4: document 1: config_error: [] should be non-empty",
        ),
    ],
)
def test_what_is_wrong_is_said_with_file_line_and_path(text: str, error: str) -> None:
    assert errors(text) == (f"f.yaml{error}",)


def test_a_step_has_one_action() -> None:
    for step in (f"say: {SAY}, advance: 1s", "at: +1s"):
        assert errors(HEAD + f"steps: [{{{step}}}]")[0].startswith(
            "f.yaml:3: document 1: steps[0]: a step has exactly one of say, burst,"
        )


def test_an_account_comes_once() -> None:
    text = "name: n\nconfig: {accounts: [{id: a, channel: mock}, {id: a, channel: mock}]}\nsteps: [advance: 1s]"
    assert errors(text) == ("f.yaml:2: document 1: config.accounts[1].id: the account 'a' comes twice",)


def test_a_document_that_contains_itself_is_refused() -> None:
    assert errors("&a [*a]")


def test_all_errors_of_all_files_come_together(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "a.yaml").write_text("name: 1\n", encoding="utf-8")
    (tmp_path / "deep" / "b.yml").write_bytes(b"\xff")
    (tmp_path / "c.txt").write_text("no scenario", encoding="utf-8")
    with pytest.raises(ScenarioError) as caught:
        load([tmp_path])
    assert [line.split(": ")[0] for line in caught.value.errors] == [
        f"{tmp_path}/a.yaml:1",
        f"{tmp_path}/a.yaml:1",
        f"{tmp_path}/deep/b.yml",
    ]


def test_nothing_to_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError):
        load([tmp_path])
    with pytest.raises(ScenarioError):
        load_file(tmp_path / "missing.yaml")


def test_the_documentation_names_every_action_and_every_expectation() -> None:
    text = (Path(__file__).parents[5] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    definitions = schema()["$defs"]
    names = [*ACTIONS, *definitions["expect"]["properties"], *schema()["properties"]]
    assert [name for name in names if f"`{name}`" not in text] == []
    assert [call for call in definitions["expect"]["properties"]["calls"]["properties"] if call not in text] == []


def test_the_example_of_the_documentation_is_a_scenario() -> None:
    text = (Path(__file__).parents[5] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    (scenario,) = load_text(text.split("```yaml\n")[1].split("```")[0], "docs/scenarios.md")
    assert len(scenario.steps) == 3
