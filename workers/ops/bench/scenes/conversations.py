"""Does it stay as fast and as small with a thousand, a hundred thousand, a million conversations known?"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from workers.ops.bench import known
from workers.ops.bench.figures import Row, Runs, Target, in_turn
from workers.ops.bench.scenes.rates import UNIT, answered
from workers.ops.bench.sizes import Bench
from workers.ops.bench.stack import Ours

MOST: Final = 0.6
"""The share of free memory that seeding may take."""
PROBE: Final = 1_000
"""Conversations that are written first, to know what one takes."""


def conversations(bench: Bench) -> Iterator[Row]:
    """A server for each number, all up at once, measured in turn; the first is what the others are compared with."""
    sizes = bench.sizes
    with ExitStack() as ending:
        stacks: dict[int, Ours] = {}
        for count in sizes.known:
            bench.tell(f"{count:,} conversations: writing them")
            ours = ending.enter_context(Ours(bench.folder))
            keys = known.template(ours)
            before = ours.used()
            written = known.seed(ours, keys, 1, PROBE)
            each = (ours.used() - before) / PROBE
            what = f"bytes for an idle conversation, {count:,} known"
            if each * count > free_bytes() * MOST:
                why = f"they would take {each * count / 2**30:.1f} GiB"
                yield Row("conversations", what, "bytes", unmeasured=why)
                continue
            written += known.seed(ours, keys, 1 + PROBE, count - PROBE)
            each = (ours.used() - before) / count
            parts = ", ".join(f"{_family(ours, key.name)} {key.size}" for key in keys)
            note = f"{written // count} keys of one answered message each: {parts}"
            yield Row("conversations", what, "bytes", each, note=note)
            stacks[count] = ours
        yield from _rates(bench, stacks)


def _rates(bench: Bench, stacks: dict[int, Ours]) -> Iterator[Row]:
    sizes, runs = bench.sizes, {count: Runs() for count in stacks}
    for number in range(sizes.rounds):
        for count, ours in stacks.items():
            bench.tell(f"round {number + 1}: {count:,} conversations known")
            runs[count].add(answered(ours, sizes.answered, sizes.conversations))
    few, *more = runs
    base = runs[few].rate
    yield Row(
        "conversations", f"answered, {few:,} conversations known", UNIT, base, trouble=runs[few].trouble
    )  # fmt: skip
    for count in more:
        yield Row(
            "conversations", f"answered, {count:,} conversations known", UNIT, runs[count].rate, f"{few:,} known", base,
            Target("at least", 0.9), runs[count].trouble, paired=in_turn(runs[count].rates, runs[few].rates),
        )  # fmt: skip


def _family(ours: Ours, name: str) -> str:
    return name.removeprefix(ours.process.keys.prefix).partition(":")[0]


def free_bytes() -> int:
    """Memory that is free on this machine; a great deal where it cannot be told."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return 2**40
    found = {line.partition(":")[0]: int(line.split()[1]) * 1024 for line in lines}
    return found.get("MemAvailable", 2**40)
