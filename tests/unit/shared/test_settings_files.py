"""The example file, the starter files and the reference hold what the models hold."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from shared.settings import Settings, from_mapping, leaves, load, problems
from workers.ops.init import Profile, starter

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "millstream.example.toml"
REFERENCE = ROOT / "docs" / "configuration.md"

# Tables that repeat another one: `[harnesses.NAME]` has the keys of `[harness]`, the others those of `[engagement]`.
SAME = {
    "harnesses.NAME.": "harness.",
    "accounts[].engagement.": "engagement.",
    "routes[].engagement.": "engagement.",
}


def own_leaves() -> list[str]:
    return [path for path in leaves(Settings) if not path.startswith(tuple(SAME))]


def test_tables_said_to_be_the_same_are() -> None:
    paths = list(leaves(Settings))
    for prefix, twin in SAME.items():
        assert [p.removeprefix(prefix) for p in paths if p.startswith(prefix)] == [
            p.removeprefix(twin) for p in paths if p.startswith(twin)
        ]


def test_the_example_parses_to_the_defaults() -> None:
    expected = from_mapping({"accounts": [{"id": "CHANGE-ME", "channel": "mock"}]})
    assert load(EXAMPLE, {}) == expected


def uncommented() -> dict[str, Any]:
    text = re.sub(r"(?m)^# (?=\[{1,2}[a-z.]+\]{1,2}$|[a-z_]+ = )", "", EXAMPLE.read_text(encoding="utf-8"))
    return tomllib.loads(text)


def test_the_commented_examples_are_valid_too() -> None:
    settings = from_mapping(uncommented())
    assert settings.routes
    assert settings.harnesses


@pytest.mark.parametrize("path", own_leaves())
def test_the_example_names_every_key(path: str) -> None:
    table: Any = uncommented()
    for part in path.split("."):
        name = part.removesuffix("[]")
        assert name in table, f"{path} is missing from {EXAMPLE.name}"
        table = {key: value for item in table[name] for key, value in item.items()} if "[]" in part else table[name]


def test_the_example_names_the_repeating_tables_and_explains_every_key() -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    assert {"harnesses", "engagement"} <= set(uncommented())
    assert "[accounts.engagement]" in text
    words = ("keywords", "negative_phrases", "piercing_words")  # explained in one comment above them
    bare = [
        line
        for line in text.splitlines()
        if re.match(r"[a-z_]+ = ", line) and " # " not in line and not line.startswith(words)
    ]
    assert bare == []
    assert all(word in "\n".join(re.findall(r"(?m)^# .*", text)) for word in words)


@pytest.mark.parametrize("path", own_leaves())
def test_the_reference_names_every_key(path: str) -> None:
    assert f"| `{path}` |" in REFERENCE.read_text(encoding="utf-8")


def test_the_reference_names_no_key_that_is_gone() -> None:
    named = re.findall(r"(?m)^\| `([a-z_\[\].]+)` \| [^|]+ \| ", REFERENCE.read_text(encoding="utf-8"))
    assert set(named) == {*own_leaves(), "routes[].engagement"}


@pytest.mark.parametrize("profile", ["team", "companion", "blank"])
def test_a_starter_file_runs_at_once(profile: Profile) -> None:
    settings = from_mapping(tomllib.loads(starter(profile)))
    assert [problem for problem in problems(settings) if problem.severity == "error"] == []
    assert [account.channel for account in settings.accounts] == ["mock"]


def test_starter_files_differ_as_their_use_does() -> None:
    team = from_mapping(tomllib.loads(starter("team")))
    companion = from_mapping(tomllib.loads(starter("companion")))
    assert (team.accounts[0].direct, companion.accounts[0].direct) == ("members", "owners")
    assert len(starter("blank")) < len(starter("companion"))
