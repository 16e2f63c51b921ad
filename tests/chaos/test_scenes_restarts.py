"""TERM, to everything at once or to one process after the other: who is told to end ends what it has begun and leaves
the rest to others. Nothing is lost, and no turn ends as unknown (design, section 4).
"""

import os
import signal
from collections.abc import Callable, Generator

import pytest

from tests.chaos.harness import between
from tests.chaos.load import ANSWERED
from tests.chaos.rig import Rig, Row, ended, rig

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("chaos")]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Generator[Rig]:
    with rig(tmp_path_factory.mktemp("restarts")) as made:
        yield made


def test_term_to_everything_and_on_again(hosts: Rig, figures: Callable[[Row], None]) -> None:
    with hosts.scene("TERM to the whole group", between(50, 300, 1)) as scene:
        for _ in range(2):
            scene.after(100)
            everything = hosts.world.living()
            for child in everything:
                os.kill(child.pid, signal.SIGTERM)
            for child in everything:
                ended(child)
            hosts.complete()
            scene.faults["times all"] += 1
        scene.after(100)
        scene.judge(figures, ANSWERED)


def test_a_rolling_restart_while_turns_take_longer_than_a_restart(hosts: Rig, figures: Callable[[Row], None]) -> None:
    with hosts.scene("rolling restart, turns of 2 to 5 s", between(2000, 5000, 1)) as scene:
        scene.after(10)
        for child in hosts.world.living():
            os.kill(child.pid, signal.SIGTERM)
            if child.stage == "ingest":
                ended(child)  # its port must be free
            hosts.restart(child)
            ended(child)
            scene.faults["restarted"] += 1
        scene.judge(figures, ANSWERED)
