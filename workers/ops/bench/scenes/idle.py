"""The latency of one message on an idle system, beside the bare chain's."""

import asyncio
import time
from collections.abc import Iterator

from workers.ops.bench import truth
from workers.ops.bench.chains import CHAINS, Chain
from workers.ops.bench.figures import Row, Target, percentile
from workers.ops.bench.sizes import Bench
from workers.ops.bench.stack import Ours
from workers.ops.bench.venvs import NotMade

PAUSE_S = 0.02
"""Between an end and the next message: whoever still tidies up has done so."""
LOOK_S = 0.0005
"""How often the end is looked for; it is known so exactly."""
LONGEST_S = 30.0
BLOCKS = 4
"""Ours and theirs take turns so often."""


def idle(bench: Bench) -> Iterator[Row]:
    """From just before publishing to the end: ours when nothing is under way, theirs when the last task runs."""
    each = max(bench.sizes.alone // BLOCKS, 1)
    peer, theirs, mine, why = CHAINS[0], list[float](), list[float](), ""
    with Ours(bench.folder) as ours:
        runs: list[str] = []
        try:
            with Chain(peer, bench.folder) as chain:
                for block in range(BLOCKS):
                    bench.tell(f"one message at a time, block {block + 1} of {BLOCKS}")
                    theirs += chain.latencies_ms(each, PAUSE_S)
                    mine += alone_ms(ours, each, runs)
        except NotMade as error:
            why = str(error)
            mine += alone_ms(ours, each * BLOCKS, runs)
        trouble = truth.answered(ours, runs[0], len(mine))[0]
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        what = f"latency of one message on an idle system, {name}"
        of_peer = percentile(theirs, share) if theirs else None
        yield Row(
            "idle", what, "ms", percentile(mine, share), peer, of_peer, Target("at most", 1.3), trouble,
            note=f"{len(mine)} messages each, publish to end", unmeasured=why,
        )  # fmt: skip


def alone_ms(ours: Ours, messages: int, runs: list[str]) -> list[float]:
    """Latencies of messages that are each sent after the end of the one before; all in the one run of `runs`."""
    runs += [] if runs else [ours.next_run()]
    publisher = ours.publisher()
    found: list[float] = []
    first = int(ours.client.incrby("bench-alone", messages)) - messages
    with asyncio.Runner() as loop:
        for number in range(first, first + messages):
            message = ours.message("answered", runs[0], number, number % 50)
            began = time.perf_counter()
            loop.run(publisher.accept([message], ours.process.clock.now_ms()))
            while ours.left():
                if time.perf_counter() - began > LONGEST_S:
                    return found
                time.sleep(LOOK_S)
            found.append((time.perf_counter() - began) * 1000)
            time.sleep(PAUSE_S)
    return found
