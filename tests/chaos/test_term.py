"""TERM: a worker takes nothing new; a turn that may not be repeated runs on to its end, one that may is handed back at
`drain_s` and asked again by somebody else under the same key (design section 4)."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.harness import Harness
from tests.chaos.load import conserved, examine, tables
from tests.integration.world import STAGES, World, eventually, server, world
from tests.platforms.callback import Callback
from tests.platforms.emulator import running

PEOPLE = 4
DRAIN_S = 0.5


def _term_the_dispatcher(now: World, harness: Harness) -> list[str]:
    """Every person's turn runs when TERM comes, and one more message each waits."""
    [leaving] = now.start("dispatch")
    ids = now.accept([{"message_id": f"m{p}", "sender": f"p{p}", "text": f"p{p}:0"} for p in range(PEOPLE)])
    harness.wait_for(lambda: len(harness.turns) == PEOPLE)
    os.kill(leaving.pid, signal.SIGTERM)
    ids += now.accept([{"message_id": f"n{p}", "sender": f"p{p}", "text": f"p{p}:1"} for p in range(PEOPLE)])
    now.start("dispatch")
    eventually(lambda: not leaving.alive(), 30, "end of the dispatcher")
    return ids


def _tables(harness: Harness, callback: Callback, **more: Any) -> dict[str, Any]:
    config = tables(harness, callback, PEOPLE)
    config["harness"] |= more
    config["pipeline"] |= {"drain_s": DRAIN_S}
    return config


@pytest.mark.xdist_group("chaos")
def test_on_term_a_turn_that_may_not_be_repeated_runs_on_to_its_end(tmp_path: Path) -> None:
    with (
        running(Harness(lambda: 1.0)) as harness,
        running(Callback()) as callback,
        server(tmp_path) as on,
        world(tmp_path, on, **_tables(harness, callback)) as now,
    ):
        now.start(*(stage for stage in STAGES if stage != "dispatch"), "keeper")
        ids = _term_the_dispatcher(now, harness)
        now.rest(30)
        examine(now, ids, harness, callback).hold(frozenset({"answered"}))
        conserved(now)


@pytest.mark.xdist_group("chaos")
def test_on_term_a_turn_that_may_be_repeated_is_handed_back(tmp_path: Path) -> None:
    delays = iter([60.0] * PEOPLE)  # the first tries take longer than anybody waits
    with (
        running(Harness(lambda: next(delays, 0.01))) as harness,
        running(Callback()) as callback,
        server(tmp_path) as on,
        world(tmp_path, on, **_tables(harness, callback, idempotent=True, timeout_s=90)) as now,
    ):
        now.start(*(stage for stage in STAGES if stage != "dispatch"), "keeper")
        ids = _term_the_dispatcher(now, harness)
        now.rest(30)
        assert now.dispositions(ids) == {"answered": 2 * PEOPLE}
        assert sorted(harness.calls.values()) == [1] * PEOPLE + [2] * PEOPLE
        assert {turn["attempt"] for turn in harness.turns} == {1}, "handing back counts no attempt"
        assert len(callback.sends) == 2 * PEOPLE
        conserved(now)
