"""`millstream up` in real processes: it answers, ends in order, restarts what dies, and leaves nothing behind."""

import json
import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.redis.embedded import available_kinds
from tests.integration.running import Callback, alive, descendants, eventually, free_port, millstream, running
from tests.platforms.emulator import post

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("up"),
    pytest.mark.skipif(available_kinds()[:1] in ([], ["fakeredis"]), reason="no server that keeps anything"),
]


@pytest.fixture
def callback() -> Iterator[Callback]:
    server = Callback()
    yield server
    server.close()


@pytest.fixture
def port(tmp_path: Path, callback: Callback) -> int:
    """A configuration in `tmp_path`; the port of its webhooks."""
    port = free_port()
    (tmp_path / "millstream.toml").write_text(
        f"""
[ingest]
port = {port}
[metrics]
port = {free_port()}
[[accounts]]
id = "demo"
channel = "mock"
join_s = 0
ack = "none"
credentials = {{ callback_url = "{callback.url}/out" }}
""",
        encoding="utf-8",
    )
    return port


def say(port: int, number: int) -> int:
    """Post a message of person `u{number}`; returns the HTTP status."""
    event = {"message_id": str(number), "sender": f"u{number}", "text": "hello"}
    return post(f"http://127.0.0.1:{port}/hooks/demo", json.dumps(event).encode(), {})


@pytest.mark.parametrize("options", [(), ("--compact",)])
def test_up_answers_and_ends_cleanly_on_term(
    tmp_path: Path, port: int, callback: Callback, options: tuple[str, ...]
) -> None:
    with running(tmp_path, "up", *options) as up:
        up.says("everything runs")
        assert f"http://127.0.0.1:{port}/hooks/demo" in up.said()
        file = tmp_path / ".millstream" / "server.json"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert say(port, 1) == 200
        callback.wait_for(lambda: callback.texts() == ["hello"])
        below = descendants(up.process.pid)
        assert len(below) == (6 if options else 10), "ingest, the workers, the keeper, the server and its host"
        up.process.send_signal(signal.SIGTERM)
        assert up.process.wait(60) == 0
        assert [pid for pid in below if alive(pid)] == []
        assert not file.exists()
        assert "killed" not in up.said()
        password = json.loads((tmp_path / ".millstream" / "endpoint.json").read_text())["password"]
        assert password not in up.said()


def test_up_keeps_what_it_had_over_a_restart(tmp_path: Path, port: int, callback: Callback) -> None:
    def dispositions() -> list[str]:
        done = millstream(tmp_path, "trace", "u1:1", "--json")
        return [story["disposition"] for story in json.loads(done.stdout)] if done.returncode == 0 else []

    with running(tmp_path, "up") as up:
        up.says("everything runs")
        assert say(port, 1) == 200
        eventually(lambda: dispositions() == ["answered"], "the message is answered")
    with running(tmp_path, "up") as up:
        up.says("everything runs")
        assert say(port, 1) == 200
        eventually(lambda: dispositions() == ["answered", "duplicate"], "the second copy is a duplicate")
        assert callback.texts() == ["hello"]
        assert say(port, 2) == 200
        # A server that crashed makes everybody wait for lease_s (30); one that was ended in order does not.
        callback.wait_for(lambda: callback.texts() == ["hello", "hello"], timeout_s=20)


def test_up_leaves_nothing_behind_when_it_is_killed(tmp_path: Path, port: int) -> None:
    with running(tmp_path, "up") as up:
        up.says("everything runs")
        below = descendants(up.process.pid)
        assert len(below) == 10
        os.kill(up.process.pid, signal.SIGKILL)
        up.process.wait(10)
        eventually(lambda: not any(alive(pid) for pid in below), "every process that `up` started has ended")


def test_up_starts_a_worker_again_that_died(tmp_path: Path, port: int, callback: Callback) -> None:
    with running(tmp_path, "up") as up:
        up.says("everything runs")
        [worker] = [
            pid for pid in descendants(up.process.pid)
            if Path(f"/proc/{pid}/cmdline").read_bytes().endswith(b"worker\0delivery\0")
        ]  # fmt: skip
        os.kill(worker, signal.SIGKILL)
        up.says("worker delivery ended with -9")
        assert say(port, 1) == 200
        callback.wait_for(lambda: callback.texts() == ["hello"], timeout_s=60)


def test_up_refuses_a_port_that_is_taken(tmp_path: Path, port: int, callback: Callback) -> None:
    config = tmp_path / "millstream.toml"
    config.write_text(config.read_text().replace(f"port = {port}", f"port = {callback.port}", 1))
    done = millstream(tmp_path, "up")
    assert done.returncode == 1
    assert "set ingest.host and ingest.port" in done.stderr
    assert "Traceback" not in done.stderr


def test_up_refuses_a_configuration_with_errors(tmp_path: Path, port: int) -> None:
    config = tmp_path / "millstream.toml"
    config.write_text(config.read_text() + '[judge]\nkind = "openai"\nurl = "http://127.0.0.1:1"\nmodel = "m"\n')
    done = millstream(tmp_path, "up")
    assert done.returncode == 2
    assert "judge.kind" in done.stderr


def test_up_refuses_another_number_of_partitions(tmp_path: Path, port: int) -> None:
    with running(tmp_path, "up") as up:
        up.says("everything runs")
    config = tmp_path / "millstream.toml"
    config.write_text(config.read_text() + "[pipeline]\npartitions = 32\n")
    done = millstream(tmp_path, "up")
    assert done.returncode == 1
    assert "set partitions = 64" in done.stderr


def test_two_keepers_and_two_ingests_of_one_server_do_no_harm(tmp_path: Path, port: int, callback: Callback) -> None:
    """Further processes may join a running `up`: they find its server by themselves."""
    with running(tmp_path, "up") as up:
        up.says("everything runs")
        second = tmp_path / "second"
        second.mkdir()
        with running(second, "--config", str(tmp_path / "millstream.toml"), "keeper"):
            assert say(port, 1) == 200
            callback.wait_for(lambda: callback.texts() == ["hello"])
