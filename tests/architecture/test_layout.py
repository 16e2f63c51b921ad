"""The tree has the shape that README and design promise."""

import re
from pathlib import Path

import pytest
from source_tree import PACKAGES, ROOT, STAGES, lua_files, name_of, python_files

MAX_LINES = 400
"""From the rules of the house (CONTRIBUTING.md)."""

EMPTY_WORDS = {"util", "utils", "common", "helper", "helpers", "manager", "managers", "misc"}


@pytest.mark.parametrize("path", [*python_files(*PACKAGES, "tests", "docs"), *lua_files()], ids=name_of)
def test_no_source_file_is_longer_than_400_lines(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MAX_LINES, f"{name_of(path)} has {lines} lines"


def test_no_file_is_named_by_a_word_that_says_nothing() -> None:
    found = [
        name_of(path)
        for path in python_files(*PACKAGES, "tests")
        if EMPTY_WORDS & set(re.split(r"[_.]", path.name) + list(path.relative_to(ROOT).parts[:-1]))
    ]
    assert found == []


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("file", ["policy.py", "facts.py", "effects.py"])
def test_a_stage_folder_has_the_same_three_files_as_every_other(stage: str, file: str) -> None:
    assert (ROOT / "workers" / stage / file).is_file()


def test_the_parts_of_the_design_are_where_it_puts_them() -> None:
    wanted = [
        "ingest/app.py", "ingest/publisher.py", "ingest/replay.py", "ingest/connectors/telegram.py",
        "workers/app.py", "workers/pipeline.py", "workers/runner.py", "workers/ops/cli.py", "workers/ops/demo.py",
        "shared/envelope.py", "shared/outcome.py", "shared/reasons.py", "shared/errors.py", "shared/clock.py",
        "shared/retry.py", "shared/message.py", "shared/reply.py", "shared/prompt.py", "shared/settings.py",
        "shared/logging.py", "shared/metrics.py", "shared/redis/keys.py", "shared/redis/scripts.py",
        "shared/harness/port.py", "shared/harness/echo.py", "shared/harness/openai.py", "shared/harness/http.py",
        "millstream.example.toml",
    ]  # fmt: skip
    assert [name for name in wanted if not (ROOT / name).is_file()] == []
    for folder in ("workers/deadletters", "workers/keeper", "workers/ops/scenario"):
        assert len(python_files(folder)) > 1, f"{folder} is empty"


@pytest.mark.parametrize("channel", ["telegram", "slack", "mock"])
def test_a_built_channel_is_one_folder_with_the_same_files(channel: str) -> None:
    folder = ROOT / "shared" / "channels" / channel
    missing = [
        name for name in ("inbound.py", "lookup.py", "outbound.py", "limits.py") if not (folder / name).is_file()
    ]
    assert missing == []


@pytest.mark.parametrize("path", lua_files(), ids=name_of)
def test_a_script_begins_by_naming_its_keys_arguments_and_reply(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    header: list[str] = []
    for line in lines[1:] if lines[0].startswith("#!") else lines:
        if not line.startswith("--"):
            break
        header.append(line.removeprefix("--").strip())
    text = "\n".join(header)
    assert text.startswith(path.name), "the header begins with the script's name"
    for word in (r"^KEYS:", r"\bARGV\[1\]:", r"\bReply:"):
        assert re.search(word, text, re.MULTILINE), f"the header says nothing about {word}"


def test_scripts_are_files_not_strings() -> None:
    found = [
        name_of(path)
        for path in python_files(*PACKAGES)
        if re.search(r"redis\.p?call\(|KEYS\[1\]", path.read_text(encoding="utf-8"))
    ]
    assert found == []
