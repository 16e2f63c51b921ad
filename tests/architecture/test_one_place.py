"""What is spelled in one file only: Redis keys, metrics; and what is reached on one way only: a channel's send."""

import ast
import re

import pytest
from source_tree import PACKAGES, ROOT, calls, lua_files, name_of, python_files, tree_of

KEYS = "shared/redis/keys.py"
METRICS = "shared/metrics.py"
COLLECTORS = {"Counter", "Gauge", "Histogram", "Summary", "Info", "Enum"}
LUA_KEY = re.compile(r"\bP \.\. '([^']*)'")
FAMILY = re.compile(r"[a-z_.]+")


def begins_with_a_prefix(node: ast.AST) -> bool:
    """Whether an expression puts text behind something called prefix: the way in which a key is spelled."""
    if isinstance(node, ast.JoinedStr) and len(node.values) > 1 and isinstance(node.values[0], ast.FormattedValue):
        first: ast.AST = node.values[0].value
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        first = node.left
    else:
        return False
    last = first.attr if isinstance(first, ast.Attribute) else first.id if isinstance(first, ast.Name) else ""
    return last.strip("_") in {"prefix", "key_prefix", "P"}


def spelled_keys(tree: ast.AST) -> list[int]:
    """The lines that spell a Redis key: text behind a prefix, or text that begins with the default prefix."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if begins_with_a_prefix(node)
        or (isinstance(node, ast.Constant) and isinstance(node.value, str) and re.match(r"ms:.", node.value))
    ]


@pytest.mark.parametrize(
    "code",
    ['f"{self._prefix}rec:{id}"', 'f"{prefix}depth"', 'self.prefix + "depth"', '"ms:depth"', 'f"ms:rec:{id}"'],
)
def test_a_spelled_key_is_recognised(code: str) -> None:
    assert spelled_keys(ast.parse(code)) == [1]


def test_redis_keys_are_spelled_in_one_file() -> None:
    found = [
        f"{name_of(path)}:{line}"
        for path in python_files(*PACKAGES)
        if name_of(path) != KEYS
        for line in spelled_keys(tree_of(path))
    ]
    assert found == []


def test_every_key_of_a_script_is_one_of_that_file() -> None:
    spelled = "\n".join(
        node.value
        for node in ast.walk(tree_of(ROOT / KEYS))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    known = set(FAMILY.findall(spelled))
    used = {
        family.group()
        for path in lua_files()
        for text in LUA_KEY.findall(path.read_text(encoding="utf-8"))
        if (family := FAMILY.match(text))
    }
    assert used, "no script spells a key: the pattern of this test is out of date"
    assert used - known == set()


def test_metrics_are_declared_in_one_file() -> None:
    declaring = {
        name_of(path)
        for path in python_files(*PACKAGES)
        if "prometheus_client" in path.read_text(encoding="utf-8")
        and any(name in COLLECTORS for _, name in calls(tree_of(path)))
    }
    assert declaring == {METRICS}


CHANNEL_SEND_ARGUMENTS = 6
"""target, part, nonce, account, api, switches: no socket's or HTTP client's `send` takes so many."""


def is_channel_send(call: ast.Call, name: str) -> bool:
    """Whether a call may be one of a channel's `send`."""
    if name != "send" or not isinstance(call.func, ast.Attribute):
        return False
    given = [*call.args, *call.keywords]
    unpacked = any(isinstance(one, ast.Starred) or (isinstance(one, ast.keyword) and not one.arg) for one in given)
    return unpacked or len(given) >= CHANNEL_SEND_ARGUMENTS


def test_r51_a_channels_send_is_called_once_and_in_delivery() -> None:
    places = [
        name_of(path)
        for path in python_files(*PACKAGES)
        if not name_of(path).startswith("shared/channels/")  # a channel's object hands on to its own outbound.py
        for call, name in calls(tree_of(path))
        if is_channel_send(call, name)
    ]
    assert len(places) == 1, f"one call, so that nothing goes round its guards: {places}"
    assert places[0].startswith("workers/delivery/")


def test_r51_delivery_asks_can_send_before_it_sends() -> None:
    asking = [path for path in python_files("workers/delivery") if "can_send" in {n for _, n in calls(tree_of(path))}]
    assert asking != []


@pytest.mark.parametrize("channel", ["telegram", "slack", "mock"])
def test_r51_the_first_statement_of_a_channels_send_asks_the_switches(channel: str) -> None:
    bodies = [
        node.body
        for path in python_files(f"shared/channels/{channel}")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.AsyncFunctionDef) and node.name == "send"
    ]
    assert bodies, f"{channel} has no send"
    for body in bodies:
        first = body[1] if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) else body[0]
        assert "switches" in ast.unparse(first), "the first statement of send does not ask the switches"
    assert any("switches.refuses(" in ast.unparse(body[1] if len(body) > 1 else body[0]) for body in bodies)


def test_only_runner_and_keeper_apply_moves() -> None:
    """A stage says what should happen; whoever runs it makes it happen (style.md, rule 5)."""
    applying = {
        name_of(path)
        for path in python_files("workers")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ImportFrom)
        and node.module == "workers.apply"
        and "apply" in {alias.name for alias in node.names}
    }
    allowed = {name for name in applying if name.startswith(("workers/runner", "workers/keeper/", "workers/ops/"))}
    assert "workers/runner.py" in applying
    assert applying - allowed == set()


def families(text: str) -> set[str]:
    """First words of the keys that a table's code spans name."""
    return {match for span in re.findall(r"`([^`]+)`", text) for match in FAMILY.findall(span)[:1]}


def test_the_data_model_tells_every_key() -> None:
    told = families((ROOT / "docs" / "data-model.md").read_text(encoding="utf-8"))
    spelled = {
        match.group()
        for node in ast.walk(tree_of(ROOT / KEYS))
        if isinstance(node, ast.JoinedStr)
        for part in node.values[1:2]
        if isinstance(part, ast.Constant) and (match := FAMILY.match(str(part.value)))
    }
    used = {text for path in lua_files() for text in LUA_KEY.findall(path.read_text(encoding="utf-8"))}
    in_scripts = {match.group() for text in used if (match := FAMILY.match(text))}
    assert len(spelled) > 20, "the pattern of this test is out of date"
    assert (spelled | in_scripts) - told == set()
