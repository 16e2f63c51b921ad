"""The server stops, in order or by kill -9, and comes back on the same port and folder: its append-only file and the
records in it are enough to lose nothing and do nothing twice (design section 3, Rollback)."""

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ingest.port import Unavailable
from shared.redis.embedded import Embedded
from tests.chaos.harness import Harness, between
from tests.chaos.load import ALLOWED, conserved, events, every_message, examine, tables
from tests.integration.world import KINDS, STAGES, World, server, world
from tests.platforms.callback import Callback
from tests.platforms.emulator import running

MESSAGES = 600
PEOPLE = 30
IN_FLIGHT = 100
RESTARTS = 3


def _in_order(on: Embedded) -> None:
    on.stop()


def _killed(on: Embedded) -> None:
    os.kill(on.pid, signal.SIGKILL)
    on.stop()  # only its host process is left


def _whole(now: World, acknowledged: list[str], harness: Harness, callback: Callback) -> None:
    """What was acknowledged, and what the server had although the test was never told so."""
    by_key = every_message(now)
    every = [id_ for ids in by_key.values() for id_ in ids]
    report = examine(now, every, harness, callback)
    print(report.line(acknowledged=len(acknowledged)))
    report.hold(ALLOWED | {"duplicate"})
    assert set(acknowledged) <= set(every), "acknowledged, and gone"
    assert len(by_key) == MESSAGES
    for ids in by_key.values():
        ends = [now.record(id_)["disposition"] for id_ in ids]
        assert len(ends) - ends.count("duplicate") == 1, f"one event, one end: {ends}"
    conserved(now)


@pytest.mark.slow
@pytest.mark.xdist_group("chaos")
@pytest.mark.parametrize("stop", [_in_order, _killed], ids=["stopped", "killed"])
def test_a_restart_of_the_server_loses_doubles_and_reorders_nothing(
    stop: Callable[[Embedded], None], tmp_path: Path
) -> None:
    data, waiting = tmp_path / "data", list(events(MESSAGES, PEOPLE, random.Random(1)))
    with (
        running(Harness(between(5, 20, 1))) as harness,
        running(Callback(0.002)) as callback,
        server(data, True) as on,
        world(tmp_path, on, **tables(harness, callback, PEOPLE)) as now,
    ):
        now.start(*STAGES, *STAGES, "keeper", "keeper")
        begun, ids, restarts, current = time.monotonic(), list[str](), 0, on
        try:
            while waiting:
                if now.depth() < IN_FLIGHT:
                    ids += now.insist([waiting.pop(0) for _ in range(min(10, len(waiting)))])
                if len(ids) - now.depth() >= (restarts + 1) * MESSAGES // (RESTARTS + 1) and restarts < RESTARTS:
                    stop(current)
                    with pytest.raises(Unavailable):  # so long it is away that every client gives up repeating
                        now.accept(waiting[:1])
                    current = Embedded.start(data, durable=True, kinds=KINDS)
                    assert current.url == on.url
                    restarts += 1
            now.rest(90)
            print(f"restarts {restarts}, seconds {time.monotonic() - begun:.1f}")
            _whole(now, ids, harness, callback)
            assert restarts == RESTARTS
            assert len(now.living()) == 2 * len(STAGES) + 2, "no process ended over it"
        finally:
            for child in now.living():
                child.kill()
            current.stop()
