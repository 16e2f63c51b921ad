"""Fifty conversations with four turns each and an outage of the harness in between: waiting is not failing.

The sizes are scaled down; MILLSTREAM_FULL=1 runs turns of 20 s and an outage of 60 s (about four minutes).
"""

import os
import time
from pathlib import Path

import pytest

from tests.chaos.harness import Chat, Harness, between
from tests.chaos.load import conserved, examine, tables
from tests.integration.world import STAGES, eventually, server, world
from tests.platforms.emulator import running

FULL = bool(os.environ.get("MILLSTREAM_FULL"))
PEOPLE = 50
TURNS = 4
AT_ONCE = 32
"""Turns of a harness at once, by default: so many may be refused before the breaker opens."""
TURN_MS = (20_000, 20_000) if FULL else (600, 1_000)
OUTAGE_S = 60.0 if FULL else 6.0
OPEN_S = 15.0 if FULL else 1.0
LONGEST_S = 700 if FULL else 90


@pytest.mark.slow
@pytest.mark.timeout(LONGEST_S + 60)
@pytest.mark.xdist_group("chaos")
def test_an_outage_of_the_harness_kills_doubles_and_reorders_nothing(tmp_path: Path) -> None:
    with (
        running(Harness(between(*TURN_MS, 1))) as harness,
        running(Chat()) as callback,
        server(tmp_path) as on,
    ):
        config = tables(harness, callback, PEOPLE)
        config["harness"] |= {"breaker": {"open_s": OPEN_S}}
        if FULL:
            config["pipeline"] |= {"lease_s": 30, "claim_s": 3, "reconcile_s": 2}
        with world(tmp_path, on, **config) as now:
            now.start(*STAGES, *STAGES, "keeper")
            begun = time.monotonic()
            ids: list[str] = []
            for turn in range(TURNS):
                ids += now.accept(
                    [{"message_id": f"m{p}-{turn}", "sender": f"p{p}", "text": f"p{p}:{turn}"} for p in range(PEOPLE)]
                )
            harness.wait_for(lambda: len(harness.turns) >= PEOPLE, 120)
            harness.out, since = True, time.monotonic()
            eventually(lambda: time.monotonic() - since > OUTAGE_S, OUTAGE_S + 5, "the outage's end")
            harness.out = False
            now.rest(LONGEST_S)
            report = examine(now, ids, harness, callback)
            passed_over = int(now.process.client.hget(now.process.keys.stats, "lane_passed_over") or 0)
            seconds = round(time.monotonic() - begun, 1)
            print(f"{dict(report.ends)}, passed over {passed_over}, refused {harness.refused}, {seconds} s")
            report.hold(frozenset({"answered"}))
            conserved(now)
            assert passed_over == 0
            assert harness.refused >= 3, "the outage was met"
            assert harness.refused <= AT_ONCE + 2 * OUTAGE_S / OPEN_S, "the breaker spared the harness"
