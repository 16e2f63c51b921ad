"""TERM while turns run that may be repeated: they are handed back at `drain_s` and asked again by somebody else under
the same key (design section 4). Turns that may not be repeated run on: see the scenes of TERM and of a rolling restart.
"""

import os
import signal
from pathlib import Path

import pytest

from tests.chaos.harness import Harness
from tests.chaos.load import conserved, tables
from tests.integration.world import STAGES, eventually, server, world
from tests.platforms.callback import Callback
from tests.platforms.emulator import running

PEOPLE = 4
DRAIN_S = 0.5


@pytest.mark.xdist_group("chaos")
def test_on_term_a_turn_that_may_be_repeated_is_handed_back(tmp_path: Path) -> None:
    delays = iter([60.0] * PEOPLE)  # the first tries take longer than anybody waits
    with running(Harness(lambda: next(delays, 0.01))) as harness, running(Callback()) as callback:
        config = tables(harness, callback, PEOPLE)
        config["harness"] |= {"idempotent": True, "timeout_s": 90}
        config["pipeline"] |= {"drain_s": DRAIN_S}
        with server(tmp_path) as on, world(tmp_path, on, **config) as now:
            now.start(*(stage for stage in STAGES if stage != "dispatch"), "keeper")
            [leaving] = now.start("dispatch")
            # Every person's turn runs when TERM comes, and one more message each waits.
            ids = now.accept([{"message_id": f"m{p}", "sender": f"p{p}", "text": f"p{p}:0"} for p in range(PEOPLE)])
            harness.wait_for(lambda: len(harness.turns) == PEOPLE)
            os.kill(leaving.pid, signal.SIGTERM)
            ids += now.accept([{"message_id": f"n{p}", "sender": f"p{p}", "text": f"p{p}:1"} for p in range(PEOPLE)])
            now.start("dispatch")
            eventually(lambda: not leaving.alive(), 30, "end of the dispatcher")
            now.rest(30)
            assert now.dispositions(ids) == {"answered": 2 * PEOPLE}
            assert sorted(harness.calls.values()) == [1] * PEOPLE + [2] * PEOPLE
            assert {turn["attempt"] for turn in harness.turns} == {1}, "handing back counts no attempt"
            assert len(callback.sends) == 2 * PEOPLE
            conserved(now)
