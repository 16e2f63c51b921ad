"""What people type and the files that they hand over: an exit code and words, never a traceback."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ingest.replay import BadLine, SavedEvent, read_events
from tests.abuse.hostile import any_text, examples, mutations, outcome, spoilt, written
from workers.ops import session
from workers.ops.scenario.format import ScenarioError, load_text
from workers.ops.scenario.model import Scenario

SCENARIOS = sorted((Path(__file__).parents[1] / "scenarios").glob("*.yaml"))
SAVED = {"account": "demo", "event": {"message_id": "1", "sender": "anna"}, "headers": {"a": "b"}, "at": 5}
PLAIN = ("init", "check", "config", "scenario", "dead", "trace", "access", "switch", "replay", "status")
"""Commands that end by themselves; without a server they say that there is none."""
WORDS = st.sampled_from(
    [
        "--help", "--json", "--config", "--profile", "team", "apply", "show", "diff", "rollback", "list", "retry",
        "drop", "--force", "-1", "0", "9" * 5000, "on", "off", "read-only", "/", "/dev/null", "nothing.toml", "--", "-",
        "--rate", "nan", "1e400", "../..", "x" * 5000, "%s", "{0}", "[red]", "\\", "*", "block", "allow", "demo",
    ]
)  # fmt: skip


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder, a configuration whose server is not there, no variables of ours."""
    for name in [name for name in os.environ if name.upper().startswith("MILLSTREAM_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MILLSTREAM_REDIS__URL", "redis://127.0.0.1:1/0")


TYPED = any_text.map(lambda text: text.replace("\x00", "").encode("utf-8", "replace").decode())


@given(st.sampled_from(PLAIN), st.lists(WORDS | TYPED, max_size=5))
@examples(120)
def test_a_command_line_ends_with_a_code_and_words(command: str, rest: list[str]) -> None:
    code, output = session.invoke([command, *rest])
    assert code in (0, 1, 2), output
    assert "a fault of Millstream" not in output
    assert "Traceback" not in output
    assert code == 0 or output.strip()


@given(st.lists(mutations(SAVED).map(written) | spoilt(written(SAVED)) | st.binary(max_size=40), max_size=5))
@examples(200)
def test_each_line_of_saved_events_is_one_or_told(tmp_path_factory: Any, lines: list[bytes]) -> None:
    file = tmp_path_factory.getbasetemp() / "saved.jsonl"
    file.write_bytes(b"\n".join([*lines, written(SAVED)]))
    found = list(read_events(file))
    assert all(isinstance(item, SavedEvent | BadLine) for item in found)
    assert all(len(str(item)) < 1000 for item in found if isinstance(item, BadLine))
    last = found[-1]
    assert isinstance(last, SavedEvent), "what is wrong in one line does not reach the next"
    assert last.event == SAVED["event"]


def read(text: str) -> list[Scenario] | None:
    """The scenarios, or None where every error has its line."""
    found = outcome(ScenarioError, lambda: load_text(text, "fuzzed.yaml"))
    if not isinstance(found, ScenarioError):
        return found
    assert found.errors
    assert all(line.startswith("fuzzed.yaml") for line in found.errors)
    return None


@given(st.data())
@examples(80)
def test_a_scenario_with_anything_wrong_is_told(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(SCENARIOS)).read_text(encoding="utf-8")
    documents = list(yaml.load_all(text, Loader=yaml.BaseLoader))
    one = data.draw(st.sampled_from(documents))
    wrong = data.draw(mutations(one).map(lambda value: written(value).decode()) | st.just(None))
    if wrong is None:
        start = data.draw(st.integers(0, max(len(text) - 2000, 0)))
        wrong = data.draw(spoilt(text[start : start + 2000].encode())).decode("utf-8", "replace")
    read(wrong)


STUMBLES = [
    "[" * 5000, "{a: " * 3000, "- " * 3000, "&a [*a]", "a: &a {b: *a}", "? [a]\n: b", "!!python/object:os.system {}",
    "!!binary x", "name: \x00", "name: \ud800", "%YAML 9.9\n---\na", "name: " + "9" * 5000, "a: 1e999999", ".inf",
    "name: a\nsteps: [" + "{}," * 3000 + "{}]", "steps: !!set {a, b}", "<<: {a: b}",
    "name: x\nnow: 2026-99-99T00:00:00Z\nsteps: [{advance: 1s}]",
    "name: x\nsteps: [{advance: " + "9" * 5000 + "s}]",
    "name: x\nsteps: [{advance: 1" + "0" * 400 + "d}]",
    "name: x\nsteps: [{at: +9999999999999d, advance: 1s}]",
    "name: x\nsteps: [{advance: 1s}]\nrandom: [.nan]",
]  # fmt: skip


@pytest.mark.parametrize("text", STUMBLES, ids=range(len(STUMBLES)))
def test_a_scenario_that_yaml_itself_stumbles_on_is_told(text: str) -> None:
    read(text)


def test_a_scenario_whose_aliases_multiply_is_refused_before_they_do() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    assert read("name: x\nconfig:\n  " + "\n  ".join(rows) + "\nsteps: [{advance: 1s}]") is None


def test_a_replay_of_a_file_with_hostile_lines_names_them(tmp_path: Path) -> None:
    file = tmp_path / "saved.jsonl"
    file.write_bytes(b"[" * 100_000 + b"\n" + b"\x00" * 5_000_000 + b"\n" + json.dumps(SAVED).encode())
    found = list(read_events(file))
    assert [type(item) for item in found] == [BadLine, BadLine, SavedEvent]
