"""The embedded server: real servers, real processes; each ends with its test."""

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from shared.redis.embedded import FAKE_WARNING, KINDS, Embedded, EmbeddedError, Kind, available_kinds

REAL: list[Kind] = [kind for kind in available_kinds() if kind != "fakeredis"]
ANY = available_kinds()


def eventually(holds: Callable[[], bool], within_s: float = 20) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def client(server: Embedded) -> redis.Redis:
    return redis.Redis.from_url(server.url, decode_responses=True)


@pytest.mark.parametrize("kind", ANY)
def test_a_started_server_answers_blocks_pops_and_runs_lua(kind: Kind, tmp_path: Path) -> None:
    with Embedded.start(tmp_path, durable=False, kinds=[kind]) as server, client(server) as reach:
        assert server.kind == kind
        assert reach.ping() is True
        reach.lpush("list", "x")
        assert reach.brpop(["list"], timeout=1) == ("list", "x")
        assert reach.eval("return tonumber(ARGV[1]) + 1", 0, 41) == 42
        assert server.warning == (FAKE_WARNING if kind == "fakeredis" else "")
    eventually(lambda: not alive(server.pid))


@pytest.mark.parametrize("kind", REAL)
def test_only_loopback_with_a_password_and_noeviction(kind: Kind, tmp_path: Path) -> None:
    with Embedded.start(tmp_path, durable=True, kinds=[kind]) as server, client(server) as reach:
        assert reach.config_get("bind") == {"bind": "127.0.0.1"}
        assert reach.config_get("protected-mode") == {"protected-mode": "yes"}
        assert reach.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert reach.config_get("appendfsync") == {"appendfsync": "everysec"}
        assert reach.info("server")["process_id"] == server.pid
        assert server.version in (reach.info("server").get("valkey_version"), reach.info("server")["redis_version"])
        port, password = reach.get_connection_kwargs()["port"], reach.get_connection_kwargs()["password"]
        with redis.Redis(port=port, retry=Retry(NoBackoff(), 0)) as stranger, pytest.raises(redis.AuthenticationError):
            stranger.ping()
        command_line = Path(f"/proc/{server.pid}/cmdline")
        if command_line.exists():
            assert password.encode() not in command_line.read_bytes()
        for name in ("server.conf", "endpoint.json"):
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


@pytest.mark.parametrize("kind", REAL)
def test_durable_data_and_the_url_are_there_after_a_stop_and_after_a_kill(kind: Kind, tmp_path: Path) -> None:
    with Embedded.start(tmp_path, durable=True, kinds=[kind]) as first, client(first) as reach:
        reach.set("stopped", "1")
    with Embedded.start(tmp_path, durable=True, kinds=[kind]) as second, client(second) as reach:
        assert second.url == first.url
        assert reach.get("stopped") == "1"
        reach.set("killed", "1")
        os.kill(second.pid, signal.SIGKILL)
        with Embedded.start(tmp_path, durable=True, kinds=[kind]) as third, client(third) as again:
            assert third.url == first.url
            assert again.mget("stopped", "killed") == ["1", "1"]


@pytest.mark.parametrize("kind", REAL)
def test_without_durable_nothing_is_kept(kind: Kind, tmp_path: Path) -> None:
    with Embedded.start(tmp_path, durable=False, kinds=[kind]) as server, client(server) as reach:
        reach.set("key", "1")
    with Embedded.start(tmp_path, durable=False, kinds=[kind]) as server, client(server) as reach:
        assert reach.get("key") is None


@pytest.mark.parametrize("kind", ANY)
def test_the_server_ends_when_its_starter_is_killed(kind: Kind, tmp_path: Path) -> None:
    program = (
        "import sys, pathlib; from shared.redis.embedded import Embedded\n"
        "server = Embedded.start(pathlib.Path(sys.argv[1]), durable=False, kinds=[sys.argv[2]])\n"
        "print(server.pid, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path), kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        assert alive(pid)
        starter.kill()
    eventually(lambda: not alive(pid))


def test_a_taken_port_is_left_to_who_has_it(tmp_path: Path) -> None:
    with Embedded.start(tmp_path / "a", durable=False, kinds=REAL) as first:
        (tmp_path / "b").mkdir()
        (tmp_path / "b" / "endpoint.json").write_text((tmp_path / "a" / "endpoint.json").read_text())
        with Embedded.start(tmp_path / "b", durable=False, kinds=REAL) as second:
            assert second.url != first.url
            with client(second) as reach:
                assert reach.info("server")["process_id"] == second.pid


def test_a_folder_with_blanks_and_quotes(tmp_path: Path) -> None:
    folder = tmp_path / 'my "own" data'
    with Embedded.start(folder, durable=True, kinds=REAL) as server, client(server) as reach:
        assert reach.config_get("dir") == {"dir": str(folder)}


def test_one_folder_has_one_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.redis.embedded.STOP_TIMEOUT_S", 0.2)
    with Embedded.start(tmp_path, durable=True, kinds=REAL), pytest.raises(EmbeddedError, match="another server"):
        Embedded.start(tmp_path, durable=True, kinds=REAL)


def test_stop_twice_is_stop_once(tmp_path: Path) -> None:
    with Embedded.start(tmp_path, durable=False, kinds=REAL) as server:
        server.stop()
        assert not alive(server.pid)


def test_fakeredis_is_refused_where_data_must_last(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedError, match="keeps nothing"):
        Embedded.start(tmp_path, durable=True, kinds=["fakeredis"])


def test_nothing_to_start_is_said(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedError, match="none of"):
        Embedded.start(tmp_path, durable=False, kinds=[])


def test_the_suite_has_a_real_server_and_the_kinds_are_in_order() -> None:
    assert REAL
    assert [kind for kind in KINDS if kind in ANY] == ANY
