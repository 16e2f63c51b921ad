"""The edge under clients that hang: ten thousand at once, or one alone; an honest webhook is answered meanwhile."""

import itertools
import json
import time
from collections.abc import Generator

import pytest

from ingest.connections import CONNECTIONS, HEAD_S, REQUEST_S
from tests.abuse.crowd import HEAD, WAYS, allowed, crowd, ended, hang, honest, open_files, rss_kb
from tests.abuse.hostile import FULL
from tests.integration.world import World, eventually, server, world

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("chaos")]

MANY = 10_000
FEWER = ("half a head", "half closed", "half a body", "half a body of 60 KB")
SIZES = dict.fromkeys(WAYS, MANY) | ({} if FULL else dict.fromkeys(FEWER, 3_000))
SIZES["reads no answer"] = 200
"""Clients that hang together. Each of those that read no answer makes the server write hundreds, which is work and not
waiting: there are fewer of them."""
SOON_S = 2.0
"""Within so long an honest webhook is answered: Slack allows 3 s in all. A machine that is busy with something else
gets as much longer as it took to answer when nobody hung."""
NUMBERS = itertools.count()


def event() -> bytes:
    return json.dumps({"message_id": f"honest-{next(NUMBERS)}", "sender": "anna", "text": "hello"}).encode()


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Generator[World]:
    folder = tmp_path_factory.mktemp("edge")
    accounts = [{"id": "demo", "channel": "mock", "self_id": "bot", "members": ["anna"]}]
    with server(folder) as on, world(folder, on, accounts=accounts) as made:
        made.start("ingest")
        yield made


@pytest.mark.parametrize("way", WAYS)
def test_thousands_that_hang_keep_nobody_waiting(edge: World, way: str) -> None:
    port, pid = edge.settings.ingest.port, edge.living()[0].pid
    alone = max(honest(port, event())[1] for _ in range(5))
    files, before = open_files(pid), rss_kb(pid)
    size = allowed(SIZES[way])
    with crowd(port, way, size) as clients:
        status, behind = honest(port, event())  # the server is still busy with taking them all in
        assert status == 200
        slowest = 0.0
        for _ in range(20):
            status, took = honest(port, event())
            assert (status, took < SOON_S + 20 * alone) == (200, True), f"{status} after {took:.2f} s"
            slowest = max(slowest, took)
        held, during = open_files(pid) - files, rss_kb(pid)
        assert held <= CONNECTIONS + 10
        over = sum(ended(client) for client in clients) if way != "reads no answer" else max(size - held, 0)
    eventually(lambda: open_files(pid) <= files + 2, 30, "connections freed")
    after = rss_kb(pid)
    per_kb = (during - before) / max(held, 1)
    print(
        f"\n{way}: {size} connections, {over} given up, {held} held; honest webhook: "
        f"{behind * 1000:.0f} ms while they came, then at most {slowest * 1000:.0f} ms ({alone * 1000:.0f} ms alone); "
        f"RSS {before} -> {during} -> {after} KiB, {per_kb:.1f} KiB a held connection"
    )
    assert during - before < CONNECTIONS * 160, "bounded memory"


def test_one_that_hangs_is_let_go_and_single_bytes_do_not_help(edge: World) -> None:
    port, pid = edge.settings.ingest.port, edge.living()[0].pid
    files = open_files(pid)
    started = time.monotonic()
    ways = {way: hang(port, way) for way in ("says nothing", "half a head", "half closed", "reads no answer")}
    gone: dict[str, float] = {}

    def all_gone() -> bool:
        for way in set(ways) - set(gone):
            if way == "half a head" and not ended(ways[way]):
                ways[way].send(b"9")  # a byte at a time, for as long as it is let
            if ended(ways[way]) if way != "reads no answer" else len(gone) == 3 and open_files(pid) <= files:
                gone[way] = time.monotonic() - started
        return len(gone) == len(ways)

    eventually(all_gone, REQUEST_S + 10, "end of those that hang")
    for client in ways.values():
        client.close()
    print("\n" + ", ".join(f"{way}: {after:.1f} s" for way, after in gone.items()))
    assert all(gone[way] < HEAD_S + 3 for way in ("says nothing", "half a head", "half closed"))
    assert gone["reads no answer"] < REQUEST_S + 8


def test_a_head_without_end_is_refused_long_before_it_is_large(edge: World) -> None:
    port = edge.settings.ingest.port
    client = hang(port, "half a head")
    client.setblocking(True)
    client.settimeout(10)
    sent = 0
    try:
        while sent < 10_000_000:
            client.sendall(b"x" * 10_000)
            sent += 10_000
    except OSError:
        pass
    client.close()
    assert sent < 5_000_000, "beyond what socket buffers take"
    assert honest(port, event())[0] == 200


def test_requests_one_after_the_other_on_one_connection_are_served(edge: World) -> None:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", edge.settings.ingest.port, timeout=10)
    for _ in range(5):
        connection.request("POST", "/hooks/demo", body=event())
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200
    connection.close()


def test_pipelined_requests_are_each_answered_in_order(edge: World) -> None:
    import socket

    bodies = [event(), b"no json", event()]
    raw = b"".join(HEAD + b"content-length: %d\r\n\r\n" % len(body) + body for body in bodies)
    with socket.create_connection(("127.0.0.1", edge.settings.ingest.port), timeout=10) as client:
        client.sendall(raw)
        answer = b""
        while answer.count(b"HTTP/1.1 ") < 3:
            answer += client.recv(4096)
    assert [part.split()[0] for part in answer.split(b"HTTP/1.1 ")[1:]] == [b"200", b"400", b"200"]
