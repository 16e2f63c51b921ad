"""What more worker processes per stage bring on this machine."""

import os
from collections.abc import Iterator
from contextlib import ExitStack

from workers.ops.bench.figures import Row, Runs
from workers.ops.bench.scenes.rates import UNIT, answered, silenced
from workers.ops.bench.sizes import Bench
from workers.ops.bench.stack import Ours, Shape


def processes(bench: Bench) -> Iterator[Row]:
    """One and two processes per stage, up at once, measured in turn."""
    sizes = bench.sizes
    with ExitStack() as ending:
        stacks = {count: ending.enter_context(Ours(bench.folder, Shape(count))) for count in sizes.processes}
        busy, quiet = {count: Runs() for count in stacks}, {count: Runs() for count in stacks}
        for number in range(sizes.rounds):
            for count, ours in stacks.items():
                bench.tell(f"round {number + 1}: {count} a stage")
                busy[count].add(answered(ours, sizes.answered, sizes.conversations))
                quiet[count].add(silenced(ours, sizes.silenced))
    note = f"{os.cpu_count()} cores"
    for kind, runs in (("answered", busy), ("silenced", quiet)):
        first = next(iter(runs), 0)
        for count, one in runs.items():
            beside = ("", None) if count == first else (f"{first} a stage", runs[first].rate)
            what = f"{kind}, {count} worker process{'es' if count > 1 else ''} a stage"
            yield Row("processes", what, UNIT, one.rate, *beside, trouble=one.trouble, note=note)
