"""The commands that need no server: writing and checking a configuration, and every kind of bad input."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from workers.ops import checks, session
from workers.ops.init import Profile
from workers.ops.output import DONE, FAILED, MISUSED

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command line in an empty folder, without what this machine's environment would add."""
    import os

    for name in [name for name in os.environ if name.upper().startswith("MILLSTREAM_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return lambda *args: session.invoke(list(args))


def findings(run: Run) -> tuple[int, dict[str, dict[str, Any]]]:
    code, output = run("check", "--json")
    return code, {one["path"]: one for one in json.loads(output)["findings"]}


@pytest.mark.parametrize("profile", ["team", "companion", "blank"])
def test_init_writes_a_configuration_that_check_accepts(run: Run, profile: Profile) -> None:
    code, output = run("init", "--profile", profile)
    assert code == DONE, output
    code, output = run("check")
    assert code == DONE, output
    assert "error" not in output


def test_what_is_configured_and_not_built_yet_is_an_error(run: Run, tmp_path: Path) -> None:
    text = "[engagement]\nengine = true\n[[accounts]]\nid = 'demo'\nchannel = 'mock'\nsender_per_minute = 3\n"
    (tmp_path / "millstream.toml").write_text(text)
    code, found = findings(run)
    assert code == FAILED
    assert found["engagement.engine"]["severity"] == "error"
    assert found["accounts[0].sender_per_minute"]["severity"] == "error"


def test_init_never_overwrites_without_force(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "millstream.toml"
    file.write_text("# mine\n")
    code, output = run("init")
    assert code == MISUSED
    assert "--force" in output
    assert file.read_text() == "# mine\n"
    assert run("init", "--force")[0] == DONE
    assert "[[accounts]]" in file.read_text()


def test_init_writes_where_config_says(run: Run, tmp_path: Path) -> None:
    assert run("--config", "other.toml", "init")[0] == DONE
    assert (tmp_path / "other.toml").exists()
    assert not (tmp_path / "millstream.toml").exists()


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('[judge]\nkind = "http"\nurl = "http://127.0.0.1:1"', "judge.kind"),
        ("[engagement]\nengine = true", "engagement.engine"),
        ('[[accounts]]\nid = "a"\nchannel = "mock"\nsend_mode = "confirm"', "accounts[0].send_mode"),
        ('[[accounts]]\nid = "a"\nchannel = "mock"\nengagement = {engine = true}', "accounts[0].engagement.engine"),
        ('[[accounts]]\nid = "a"\nchannel = "qq"\ncredentials = {secret = "s"}', "accounts[0].channel"),
        (
            '[[accounts]]\nid = "a"\nchannel = "slack"\ntransport = "socket"\ncredentials = {token = "t"}',
            "accounts[0].transport",
        ),
        ('[[accounts]]\nid = "a"\nchannel = "mock"\n[[routes]]\nsend_mode = "confirm"', "routes[0].send_mode"),
        (
            '[[accounts]]\nid = "a"\nchannel = "telegram"\ncredentials = {token = "1:x"}',
            "accounts[0].credentials.secret",
        ),
    ],
)
def test_check_refuses_what_cannot_work(run: Run, tmp_path: Path, text: str, path: str) -> None:
    (tmp_path / "millstream.toml").write_text(text + "\n")
    settings = session.read_settings(tmp_path / "millstream.toml")
    found = {one.path: one for one in checks.of_settings(settings)}
    assert found[path].severity == "error"
    assert found[path].fix


def test_joining_is_a_warning_until_it_is_built(run: Run, tmp_path: Path) -> None:
    (tmp_path / "millstream.toml").write_text('[[accounts]]\nid = "a"\nchannel = "mock"\n')
    code, found = findings(run)
    assert code == DONE
    assert found["accounts.join_s"]["severity"] == "warning"


def test_check_reaches_redis_and_the_harness(run: Run, tmp_path: Path) -> None:
    (tmp_path / "millstream.toml").write_text(
        '[redis]\nurl = "redis://:hidden-password@127.0.0.1:1/0"\n[harness]\nkind = "http"\nurl = "http://127.0.0.1:1/x"\n'
    )
    code, output = run("check")
    assert code == FAILED
    assert re.search(r"error\s+redis.url: the server does not answer", output)
    assert re.search(r"error\s+harness.url: 127.0.0.1:1 cannot be reached", output)
    assert "hidden-password" not in output


def test_check_names_every_fault_of_a_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "millstream.toml").write_text('[ingest]\nprot = 1\n[[accounts]]\nid = "a"\nchannel = "irc"\n')
    code, output = run("check")
    assert code == FAILED
    assert 'did you mean "port"' in output
    assert "accounts[0].channel" in output


NO_SERVER = [
    ("status",), ("trace", "x"), ("dead", "list"), ("dead", "show", "x"), ("dead", "replay", "x"), ("pause",),
    ("resume",), ("switch", "read-only", "on"), ("access", "allow", "a", "u"), ("config", "show"), ("config", "diff"),
    ("config", "rollback", "1"), ("ingest",), ("worker", "admission"), ("keeper",), ("replay", "x"),
]  # fmt: skip


@pytest.mark.parametrize("args", NO_SERVER, ids=" ".join)
def test_without_a_server_a_command_says_what_to_do(run: Run, args: tuple[str, ...]) -> None:
    code, output = run(*args)
    assert code == FAILED
    assert output.strip() == (
        "redis.url is empty and no `millstream up` runs here: start it, or set redis.url to your server's address"
    )


@pytest.mark.parametrize("args", NO_SERVER, ids=" ".join)
def test_a_server_that_does_not_answer_is_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...]
) -> None:
    monkeypatch.setenv("MILLSTREAM_REDIS__URL", "redis://:hidden-password@127.0.0.1:1/0")
    code, output = run(*args)
    assert code == FAILED
    assert (
        output.strip() == "Redis does not answer at redis.url: start it or correct the address; see `millstream check`"
    )


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("worker", "nope"), "admission, engagement, judge, quotes, dispatch, delivery"),
        (("dead", "list", "--stage", "nope"), "delivery, poison"),
        (("switch", "nope", "on"), "read-only"),
        (("switch", "read-only", "maybe"), "off"),
        (("access", "promote", "a", "u"), "allow"),
        (("access", "allow", "a", " "), "empty"),
        (("scenario", "no-such-folder"), "no-such-folder"),
        (("scenario",), "paths"),
        (("config", "rollback", "one"), "number"),
        (("config", "apply", "no-such.toml"), "no-such.toml: cannot be read"),
        (("--config", "no-such.toml", "status"), "no-such.toml: cannot be read"),
        (("trace",), "message"),
        (("nope",), "nope"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_misused_command_ends_with_2_and_says_why(run: Run, args: tuple[str, ...], said: str) -> None:
    code, output = run(*args)
    assert code == MISUSED
    assert said.lower() in output.lower()
    assert "Traceback" not in output


def test_a_configuration_that_is_refused_ends_every_command(run: Run, tmp_path: Path) -> None:
    (tmp_path / "millstream.toml").write_text("not toml at all\n")
    for args in (("status",), ("ingest",), ("up",), ("config", "show")):
        code, output = run(*args)
        assert code == MISUSED
        assert "millstream.toml:1: is not valid TOML" in output


def test_a_malformed_scenario_ends_with_2(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text("name: one\nsteps: nothing\n")
    code, output = run("scenario", str(file))
    assert code == MISUSED
    assert "one.yaml" in output


def test_every_command_explains_itself(run: Run) -> None:
    code, output = run("--help")
    assert code == DONE
    commands = set(re.findall(r"^│ (\w+) ", output, re.MULTILINE))
    assert {
        "up",
        "ingest",
        "worker",
        "keeper",
        "demo",
        "init",
        "check",
        "status",
        "trace",
        "replay",
        "scenario",
    } <= commands
    for command in commands:
        code, output = run(command, "--help")
        assert code == DONE
        assert "Usage: " in output
