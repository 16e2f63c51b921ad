"""A scenario file, read and checked: YAML's core schema, `schema.json`, and what a schema cannot say."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from shared.errors import MillstreamError
from workers.ops.scenario.documents import WrongValueError, scenario_of
from workers.ops.scenario.model import Scenario

SUFFIXES = (".yaml", ".yml")
ACTIONS = (
    "say", "burst", "receive", "redeliver", "fault", "send", "restart", "cli", "http", "set", "replay", "approve",
    "reject", "advance",
)  # fmt: skip
MESSAGES = ("say", "receive")
"""The actions whose message can come again."""


class ScenarioError(MillstreamError):
    """Files that are no scenarios. `errors`: one line each, `file:line: document N: path: what is wrong`."""

    def __init__(self, errors: Sequence[str]) -> None:
        super().__init__("\n".join(errors))
        self.errors = tuple(errors)


class CoreLoader(yaml.SafeLoader):
    """YAML's core schema: only true and false are booleans, times stay text, a key is text and comes once."""

    yaml_implicit_resolvers: dict[str, Any] = {}

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """As the base class, but refuses what it would silently accept. Raises yaml.YAMLError."""
        seen: set[str] = set()
        for key_node, _ in node.value:
            key: object = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is not text: put it into quotes", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} comes twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


# The four implicit types of the core schema (YAML 1.2.2, section 10.3.2), decimal numbers only.
for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))
# The base class reads a leading zero as octal; in the core schema 010 is ten.
CoreLoader.add_constructor("tag:yaml.org,2002:int", lambda _loader, node: int(node.value))

Trail = tuple["str | int", ...]


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document with its node tree, which knows the lines."""

    value: Any
    node: yaml.Node

    def line(self, path: Trail) -> int:
        """The line (from 1) of what `path` leads to, as far as it exists."""
        node = self.node
        for part in path:
            below = _child(node, part)
            if below is None:
                break
            node = below
        return node.start_mark.line + 1


def load(paths: Sequence[Path]) -> list[Scenario]:
    """All scenarios of files, and of folders with everything below them. Raises ScenarioError with every error."""
    found = [path for given in paths for path in _files(given)]
    if not found:
        raise ScenarioError([f"{', '.join(map(str, paths)) or 'no path'}: no scenario file found"])
    scenarios: list[Scenario] = []
    errors: list[str] = []
    for path in found:
        try:
            scenarios += load_file(path)
        except ScenarioError as error:
            errors += error.errors
    if errors:
        raise ScenarioError(errors)
    return scenarios


def load_file(path: Path) -> list[Scenario]:
    """The scenarios of one file, in order. Raises ScenarioError with every error of the file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError([f"{path}: cannot be read: {error}"]) from error
    return load_text(text, str(path))


def load_text(text: str, file: str) -> list[Scenario]:
    """As `load_file`; `file` is what errors call the text. Raises ScenarioError."""
    try:
        documents = list(_documents(text))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{file}:{mark.line + 1}" if mark else file
        raise ScenarioError([f"{where}: {error.problem or error.context}"]) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ScenarioError([f"{file}: {' '.join(str(error).split())}"]) from error
    if not documents:
        raise ScenarioError([f"{file}: no document"])
    errors: list[str] = []
    scenarios: list[Scenario] = []
    names: dict[str, int] = {}
    for number, document in enumerate(documents, 1):
        wrong = sorted(set(_schema_errors(document.value)), key=str)
        if not wrong:
            wrong = list(_reference_errors(document.value))
            name = document.value["name"]
            if name in names:
                wrong.append((("name",), f"also the name of document {names[name]}"))
            names.setdefault(name, number)
        if not wrong:
            try:
                scenarios.append(scenario_of(document.value, file, number, document.line))
            except WrongValueError as error:
                wrong.append((error.path, error.what))
        errors += [f"{file}:{document.line(at)}: document {number}: {_shown(at)}: {what}" for at, what in wrong]
    if errors:
        raise ScenarioError(errors)
    return scenarios


def _documents(text: str) -> Iterator[Document]:
    loader = CoreLoader(text)
    try:
        while loader.check_node():
            node: Any = loader.get_node()
            yield Document(loader.construct_document(node), node)
    finally:
        loader.dispose()


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(found for found in path.rglob("*") if found.suffix in SUFFIXES)
    return [path]


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema of a scenario, as it is packaged."""
    return json.loads(files("workers.ops.scenario").joinpath("schema.json").read_text(encoding="utf-8"))


def _schema_errors(document: Any) -> Iterator[tuple[Trail, str]]:
    for error in Draft202012Validator(schema()).iter_errors(document):
        if _chooses_action(error):
            yield tuple(error.absolute_path), f"a step has exactly one of {', '.join(ACTIONS)}"
            continue
        leaf = best_match([error]) or error
        yield tuple(leaf.absolute_path), _what(leaf)


def _chooses_action(error: ValidationError) -> bool:
    tried: Any = error.validator_value
    return error.validator == "oneOf" and {"required": ["advance"]} in tried


def _what(error: ValidationError) -> str:
    if error.validator == "not":
        return "these keys do not go together"
    rule: Any = error.schema
    if error.validator == "pattern" and "description" in rule:
        return f"{error.instance!r} is not written as in {rule['description']!r}"
    return error.message if len(error.message) <= 300 else f"{error.message[:300]}…"


def _reference_errors(document: Mapping[str, Any]) -> Iterator[tuple[Trail, str]]:
    """Accounts exist and come once; what is redelivered was a message before; a fault has a step to happen in."""
    accounts = [account["id"] for account in document.get("config", {}).get("accounts", [])]
    for n, account in enumerate(accounts):
        if account in accounts[:n]:
            yield ("config", "accounts", n, "id"), f"the account {account!r} comes twice"
    for path, name in _account_names(document):
        if name not in accounts:
            yield path, f"the account {name!r} is not in config.accounts"
    steps = document["steps"]
    for n, step in enumerate(steps):
        if "redeliver" in step:
            target = step["redeliver"]["step"]
            if target > n or not any(key in steps[target - 1] for key in MESSAGES):
                yield ("steps", n, "redeliver", "step"), f"step {target} is not an earlier say or receive"
        if "fault" in step and n + 1 == len(steps):
            yield ("steps", n, "fault"), "no step follows in which it could happen"


def _account_names(document: Mapping[str, Any]) -> Iterator[tuple[Trail, str]]:
    given = document.get("given", {})
    for key in ("index", "frozen"):
        for n, entry in enumerate(given.get(key, [])):
            yield ("given", key, n, "account"), entry["account"]
    for n, session in enumerate(given.get("sessions", [])):
        yield ("given", "sessions", n, "conversation", "account"), session["conversation"]["account"]
    for n, answer in enumerate(document.get("platform", [])):
        yield ("platform", n, "account"), answer["account"]
    for n, step in enumerate(document["steps"]):
        for key in (*MESSAGES, "send"):
            if key in step:
                yield ("steps", n, key, "account"), step[key]["account"]
        for k, said in enumerate(step.get("burst", [])):
            yield ("steps", n, "burst", k, "account"), said["account"]
        for k, changed in enumerate(step.get("set", {}).get("accounts", [])):
            yield ("steps", n, "set", "accounts", k, "id"), changed["id"]
        for name in step.get("expect", {}).get("index_size", {}):
            yield ("steps", n, "expect", "index_size", name), name


def _child(node: yaml.Node, part: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == part), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part]
    return None


def _shown(path: Trail) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".") or "(document)"
