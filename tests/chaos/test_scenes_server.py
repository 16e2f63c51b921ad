"""The server stops, is killed, loses its last second, or has no room left, on disk or in memory: its append-only file
and the records in it are enough to lose nothing and do nothing twice (design section 3, Rollback and Retention)."""

import os
import signal
import time
from collections.abc import Callable, Generator

import pytest

from shared.redis.embedded import Embedded
from tests.chaos import full_disk
from tests.chaos.last_second import Sizes
from tests.chaos.load import ALLOWED, ANSWERED, conserved
from tests.chaos.rig import Rig, Row, rig
from tests.integration.world import KINDS, eventually

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("chaos")]

RESTARTS = 2
HELD_S = 8
"""How long a lack of room lasts: longer than a claim and a lease of these tests."""
CLAIM_S = 4
"""No worker dies here, so no claim runs out, but that of one which failed at its work."""


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Generator[Rig]:
    folder = tmp_path_factory.mktemp("server")
    with Embedded.start(folder / "like", durable=False, kinds=KINDS) as like:
        program = full_disk.installed(folder / "bin", like)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        with rig(folder, kinds=["redis-server"], claim_s=CLAIM_S) as made:
            yield made


def _stop(on: Embedded) -> None:
    on.stop()


def _kill(on: Embedded) -> None:
    os.kill(on.pid, signal.SIGKILL)


def _all_live(hosts: Rig) -> None:
    assert len(hosts.world.living()) == sum(len(host.runs) for host in hosts.hosts), "no process ended over it"


@pytest.mark.parametrize(("end", "how"), [(_stop, "TERM"), (_kill, "kill -9")], ids=["stopped", "killed"])
def test_the_server_ends_and_comes_back(
    end: Callable[[Embedded], None], how: str, hosts: Rig, figures: Callable[[Row], None]
) -> None:
    with hosts.scene(f"server restarted after {how}") as scene:
        for _ in range(RESTARTS):
            scene.after(100)
            before = scene.stream.refused.total()
            end(hosts.server)
            # So long it is away that everybody gives up repeating.
            eventually(lambda n=before: scene.stream.refused.total() > n + 1, 30, "refusals")
            hosts.restart_server()
            scene.faults["restarts"] += 1
        scene.after(100)
        scene.judge(figures)
        _all_live(hosts)


def test_the_disk_of_the_server_is_full(hosts: Rig, figures: Callable[[Row], None]) -> None:
    with hosts.scene("full disk under the server") as scene:
        scene.after(100)
        scene.stream.pressing = True
        full_disk.fill(hosts.server, hosts.data)
        try:
            eventually(lambda: scene.stream.refused["503"], 30, f"answer 503, {scene.stream.refused}")
            scene.stream.join(HELD_S)
            taken = len(scene.stream.acknowledged)
            assert scene.stream.is_alive()
        finally:
            scene.stream.pressing = False
            full_disk.make_room(hosts.server)
        eventually(lambda: len(scene.stream.acknowledged) > taken, 30, "acceptance, now that there is room")
        scene.faults["disk full"] += 1
        scene.after(100)
        scene.judge(figures)
        _all_live(hosts)


def test_the_memory_of_the_server_is_full(hosts: Rig, figures: Callable[[Row], None]) -> None:
    client = hosts.world.process.client
    with hosts.scene("memory limit reached, noeviction") as scene:
        scene.after(100)
        scene.stream.pressing = True
        client.config_set("maxmemory", client.info("memory")["used_memory"] * 9 // 10)
        try:
            eventually(lambda: scene.stream.refused["503"], 30, f"answer 503, {scene.stream.refused}")
            scene.stream.join(HELD_S)
        finally:
            scene.stream.pressing = False
            client.config_set("maxmemory", 0)
        scene.faults["limit reached"] += 1
        scene.after(100)
        scene.judge(figures, ANSWERED)
        assert scene.taken_over() == 0, "what is under way goes on to its end, and waiting is not failing"
        _all_live(hosts)


def test_the_host_of_the_server_crashes_and_its_last_second_is_gone(hosts: Rig, figures: Callable[[Row], None]) -> None:
    with hosts.scene("server loses its last second") as scene:
        scene.after(100)
        with Sizes(hosts.data) as sizes:
            eventually(lambda: sizes.span_s() > 2, 10, "two seconds of sizes")
            _kill(hosts.server)
            since = time.monotonic() - 1
        hosts.server.stop()  # its host process has seen its end
        since = sizes.cut_back(since)
        hosts.restart_server()
        scene.faults["rollback: lost and doubled are what was done in that second"] += 1
        scene.after(100)
        scene.rest()
        report, row = scene.report()
        figures(row)
        scene.forgiven(report, since)
        report.hold(ALLOWED)
        conserved(hosts.world)
        _all_live(hosts)
