"""The commands against a real server and a running `up`: what they show, what they change, what they refuse."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shared.redis.client import connect
from shared.redis.embedded import available_kinds
from tests.integration.running import Callback, eventually, free_port, running
from tests.platforms.emulator import post
from workers.ops import session
from workers.ops.output import DONE, FAILED, MISUSED
from workers.ops.story.platforms import Platforms

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("cli"),
    pytest.mark.skipif(available_kinds()[:1] in ([], ["fakeredis"]), reason="no server that keeps anything"),
]
REFUSED = "refuse me once"
MARKER = "words-of-a-person"


class World:
    """A running `up`: its configuration file, its webhooks, the platform behind its mock account."""

    def __init__(self, config: Path, port: int, callback: Callback) -> None:
        self.config = config
        self.hook = f"http://127.0.0.1:{port}/hooks/demo"
        self.callback = callback
        self.text = config.read_text(encoding="utf-8")

    def run(self, *args: str) -> tuple[int, str]:
        return session.invoke(["--config", str(self.config), *args])

    def read(self, *args: str) -> Any:
        code, output = self.run(*args, "--json")
        assert code == DONE, output
        return json.loads(output)

    def say(self, number: str, text: str = MARKER, **more: Any) -> None:
        event = {"message_id": number, "sender": f"u{number}", "text": text, **more}
        assert post(self.hook, json.dumps(event).encode(), {}) == 200

    def ended(self, message: str) -> list[str]:
        """The dispositions of a message's envelopes."""
        code, output = self.run("trace", message, "--json")
        return [story["disposition"] for story in json.loads(output)] if code == DONE else []


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder, port, callback, harness = tmp_path_factory.mktemp("cli"), free_port(), Callback(), Platforms(REFUSED)
    config = folder / "millstream.toml"
    config.write_text(
        f"""
[ingest]
port = {port}
[metrics]
port = {free_port()}
[harness]
kind = "http"
url = "{harness.url}/turns"
secret = "hidden-secret"
failure_notice = ""
[[accounts]]
id = "demo"
channel = "mock"
join_s = 0
ack = "none"
credentials = {{ callback_url = "{callback.url}/out", secret = "" }}
""",
        encoding="utf-8",
    )
    with running(folder, "up") as up:
        up.says("everything runs")
        yield World(config, port, callback)
    harness.close()
    callback.close()


def test_check_is_content_with_what_runs(world: World) -> None:
    code, output = world.run("check")
    assert code == DONE, output
    assert "takes connections" in output
    assert re.search(r"ok\s+redis: (Redis|Valkey) [78]", output)
    assert "hidden-secret" not in output


def test_status_shows_what_runs(world: World) -> None:
    state = world.read("status")
    assert state["keeper"] is True
    assert state["switches"] == {"read_only": False, "safe_mode": False, "paused": False}
    assert set(state["queued"]) == {"admission", "engagement", "judge", "quotes", "dispatch", "delivery"}
    assert [a["id"] for a in state["accounts"]] == ["demo"]
    assert "elected" in world.run("status")[1]


def test_trace_tells_every_stage_and_no_text(world: World) -> None:
    quote = {"message_id": "0", "author_name": "Bob", "content": f"{MARKER} quoted"}
    world.say("t1", reply_to=quote)
    eventually(lambda: world.ended("ut1:t1") == ["answered"], "the message is answered")
    world.say("t1", reply_to=quote)
    eventually(lambda: world.ended("ut1:t1") == ["answered", "duplicate"], "the second copy is a duplicate")
    first, second = world.read("trace", "ut1:t1")
    assert [row["stage"] for row in first["decisions"]] == [
        "admission", "engagement", "quotes", "dispatch", "delivery",
    ]  # fmt: skip
    assert all(row["version"] >= 1 and row["at"] > 0 for row in first["decisions"])
    assert first["decisions"][2]["provenance"] == "payload"
    assert first["parts"] == {"0": "sent"}
    assert [row["outcome"] for row in second["decisions"]] == ["duplicate"]
    assert world.read("trace", "t1") == [first, second], "the platform's bare id finds the same"
    assert world.read("trace", first["id"]) == [first]
    assert world.read("trace", second["id"], "--account", "demo") == [second]
    code, output = world.run("trace", "t1")
    assert code == DONE
    assert MARKER not in output
    assert "quoted_text_resolved" in output


def test_trace_of_what_is_not_kept_says_what_to_give(world: World) -> None:
    code, output = world.run("trace", "nobody-sent-this")
    assert code == FAILED
    assert "CHAT:MESSAGE" in output
    code, output = world.run("trace", "x", "--account", "nope")
    assert code == FAILED
    assert "there are demo" in output


def test_a_dead_letter_is_listed_shown_and_replayed(world: World) -> None:
    world.say("d1", text=REFUSED)
    eventually(lambda: world.ended("ud1:d1") == ["dead"], "the harness refused it")
    [letter] = world.read("dead", "list", "--stage", "dispatch", "--account", "demo")
    assert (letter["reason"], letter["status"], letter["replays"]) == ("harness-refused", "dead", 0)
    assert world.read("dead", "list", "--reason", "crash-loop") == []
    assert "no dead letters that fit" in world.run("dead", "list", "--channel", "slack")[1]
    assert letter["id"] in world.run("dead", "list")[1]
    shown = world.read("dead", "show", letter["id"])
    assert [row["outcome"] for row in shown["decisions"]][-1] == "dead"
    assert REFUSED not in world.run("dead", "show", letter["id"])[1]
    assert REFUSED in world.run("dead", "show", letter["id"], "--payload")[1]
    code, output = world.run("dead", "replay", letter["id"])
    assert code == DONE, output
    eventually(lambda: world.ended("ud1:d1") == ["answered"], "the replay is answered")
    code, output = world.run("dead", "replay", letter["id"])
    assert code == FAILED
    assert "it is not dead any more" in output


def test_poison_is_kept_and_cannot_be_replayed(world: World) -> None:
    settings = session.with_server(session.read_settings(world.config), world.config)
    client = connect(settings.redis.url)
    client.lpush("ms:wake.engagement", b"\xff not a task")
    client.close()
    eventually(lambda: len(world.read("dead", "list", "--stage", "poison")) == 1, "the poison is kept")
    [letter] = world.read("dead", "list", "--stage", "poison")
    code, output = world.run("dead", "replay", letter["id"], "--again")
    assert code == FAILED
    assert "nothing to replay" in output
    assert "not a task" in world.run("dead", "show", letter["id"], "--payload")[1]


@pytest.mark.parametrize("command", ["show", "replay"])
def test_an_unknown_dead_letter_is_one_clear_line(world: World, command: str) -> None:
    code, output = world.run("dead", command, "nope")
    assert code == FAILED
    assert output.strip() == "no dead letter nope: `millstream dead list` shows those that are kept"


def test_pause_holds_sends_and_resume_lets_them_go(world: World) -> None:
    before = len(world.callback.texts())
    assert world.run("pause")[0] == DONE
    assert world.read("status")["switches"]["paused"] is True
    world.say("p1")
    eventually(lambda: world.read("status")["parked"]["pause"] == 1, "the answer waits")
    assert len(world.callback.texts()) == before
    assert world.run("resume")[0] == DONE
    eventually(lambda: world.ended("up1:p1") == ["answered"], "the answer goes")
    assert len(world.callback.texts()) == before + 1


def test_switches_are_turned_and_audited(world: World) -> None:
    assert world.run("switch", "read-only", "on") == (DONE, "read-only is on\n")
    assert world.read("status")["switches"]["read_only"] is True
    code, output = world.run("switch", "read-only", "off")
    assert code == DONE
    assert "--apply" in output
    assert world.run("switch", "read-only", "off", "--apply") == (DONE, "read-only is off\n")
    assert world.run("switch", "safe-mode", "on")[0] == DONE
    assert world.run("switch", "safe-mode", "off", "--apply")[0] == DONE
    assert world.read("status")["switches"] == {"read_only": False, "safe_mode": False, "paused": False}
    reasons = [row["reason"] for row in audit(world) if row["type"] == "switch"]
    assert reasons[-5:] == ["read_only=on", "read_only=off", "read_only=off", "safe_mode=on", "safe_mode=off"]


def audit(world: World) -> list[dict[str, Any]]:
    with session.session(world.config) as ctx:
        return [json.loads(row["row"]) for _, row in ctx.client.xrange(ctx.keys.audit)]


def test_access_acts_on_the_next_message(world: World) -> None:
    assert world.run("access", "block", "demo", "ua1")[0] == DONE
    world.say("a1")
    eventually(lambda: world.ended("ua1:a1") == ["denied"], "a blocked sender is denied")
    assert world.run("access", "remove", "demo", "ua1")[0] == DONE
    assert world.run("access", "allow", "demo", "ua1", "--as", "owner")[0] == DONE
    assert world.run("access", "allow", "demo", "ua1", "--as", "owner")[0] == DONE
    with session.session(world.config) as ctx:
        account = ctx.account("demo")
        assert account is not None
        assert (account.owners, account.members, account.blocked) == (["ua1"], [], [])
    rows = [row for row in audit(world) if row["type"] == "access"]
    assert [(row["reason"], row["into"]) for row in rows] == [
        ("block", "blocked"), ("remove", ""), ("allow", "owners"), ("allow", "owners"),
    ]  # fmt: skip
    code, output = world.run("access", "allow", "nope", "u")
    assert code == FAILED
    assert output.strip() == "no account nope: there are demo"


def test_configuration_is_applied_shown_compared_and_rolled_back(world: World, tmp_path: Path) -> None:
    first = world.read("config", "show")["version"]
    file = tmp_path / "new.toml"
    changed = world.text.replace('"hidden-secret"', '"another-secret"').replace("ack =", 'owners = ["boss"]\nack =')
    file.write_text(changed, encoding="utf-8")
    code, output = world.run("config", "apply", str(file))
    assert (code, output) == (DONE, f"version {first + 1} is in force\n")
    assert world.run("config", "apply", str(file)) == (DONE, f"nothing changed: version {first + 1} stays in force\n")
    shown = world.read("config", "show")
    assert shown["config"]["accounts"][0]["owners"] == ["boss"]
    assert shown["config"]["harness"]["secret"] == "**********"
    assert [row["version"] for row in shown["versions"]][:2] == [first + 1, first]
    rows = {row["path"]: (row["old"], row["new"]) for row in world.read("config", "diff", str(first))}
    assert rows == {
        "harness.secret": ("**********", "**********"),
        "accounts[demo].owners": (None, ["boss"]),
    }
    assert world.read("config", "diff", str(first), str(first)) == []
    for command in (("show",), ("diff",), ("diff", str(first)), ("show", str(first))):
        output = world.run("config", *command)[1]
        assert "hidden-secret" not in output
        assert "another-secret" not in output
    own = {row["path"] for row in world.read("config", "diff")}
    assert own == {"harness.secret", "accounts[demo].owners"}, "the file against what is in force"
    assert world.run("config", "rollback", str(first))[0] == DONE
    assert world.read("config", "diff") == []
    code, output = world.run("config", "rollback", "99")
    assert code == FAILED
    assert "version 99 is not kept" in output


def test_looking_never_applies_a_changed_file(world: World) -> None:
    before = world.read("config", "show")["version"]
    world.config.write_text(world.text.replace("ack =", 'members = ["m"]\nack ='), encoding="utf-8")
    try:
        world.read("status")
        assert world.read("config", "show")["version"] == before
        assert [row["path"] for row in world.read("config", "diff")] == ["accounts[demo].members"]
    finally:
        world.config.write_text(world.text, encoding="utf-8")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('[[accounts]]\nid = "tg"\nchannel = "telegram"\n', "credentials.secret"),
        ("[pipeline]\npartitions = 8\n", "set it to 64"),
        ("[pipelin]\n", 'did you mean "pipeline"'),
    ],
)
def test_a_configuration_with_errors_is_not_applied(world: World, tmp_path: Path, more: str, said: str) -> None:
    before = world.read("config", "show")["version"]
    file = tmp_path / "bad.toml"
    file.write_text(world.text + more, encoding="utf-8")
    code, output = world.run("config", "apply", str(file))
    assert code == MISUSED
    assert said in output
    assert world.read("config", "show")["version"] == before


def test_saved_events_are_replayed(world: World, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    event = {"message_id": "r1", "sender": "ur1", "text": "hello"}
    file.write_text(json.dumps({"account": "demo", "event": event}) + "\nnot json\n", encoding="utf-8")
    code, output = world.run("replay", str(file), "--json")
    assert code == FAILED, "one line was bad"
    told = json.loads(output)
    assert told["events"] == 1
    assert told["bad"] == [f"{file}:2: the line is not JSON"]
    eventually(lambda: world.ended(told["ids"][0]) == ["answered"], "the saved event is answered")
    code, output = world.run("replay", str(tmp_path / "nope.jsonl"))
    assert code == FAILED
    assert "nope.jsonl: No such file or directory" in output
