"""What a message costs the server: commands and bytes. These hold on any machine."""

import time
from collections import Counter
from collections.abc import Callable, Iterator

from shared.index import IndexEntry, OutboundIndex
from workers.ops.bench import truth
from workers.ops.bench.events import ACCOUNT
from workers.ops.bench.figures import Row, Target, Trouble
from workers.ops.bench.scenes.idle import alone_ms
from workers.ops.bench.sizes import Bench
from workers.ops.bench.stack import BATCH, Ours, Shape

IDLE_S = 4.0
"""How long the idle processes' own commands are counted, to take them off: two beats of the keeper."""
INDEXES = 20
"""Full outbound indexes over which bytes are taken."""
TYPICAL = 400
"""Code points of a sent answer in an index."""
CONVERSATIONS = 200
MOST_TOLD = 7


def cost(bench: Bench) -> Iterator[Row]:
    """Commands of an answered and of a silenced message; bytes of what is kept."""
    with Ours(bench.folder) as ours:
        bench.tell("commands of an answered message alone")
        runs: list[str] = []
        alone_ms(ours, 1, runs)  # what is loaded at first use is not a message's
        calls = _counted(ours, lambda: alone_ms(ours, bench.sizes.cost, runs))
        trouble, _ = truth.answered(ours, runs[0], bench.sizes.cost + 1)
        yield _commands("Redis commands for an answered message alone", calls, bench.sizes.cost, 70, trouble)
        bench.tell(f"commands of a silenced message at batch {BATCH}")
        batches = max(bench.sizes.cost // 10, 3)
        run = ours.next_run()
        calls = _counted(ours, lambda: _batches(ours, run, batches))
        trouble = truth.silenced(ours, run, batches * BATCH)
        what = f"Redis commands for a silenced message at batch {BATCH}"
        yield _commands(what, calls, batches * BATCH, 18, trouble)
        bench.tell("bytes of full outbound indexes")
        entries = ours.settings.index.max_entries
        yield Row(
            "cost", f"bytes for a full outbound index ({entries} answers of {TYPICAL} characters)", "bytes",
            _indexes(ours),
        )  # fmt: skip
    with Ours(bench.folder, Shape(workers=False, ingest=False)) as ours:
        bench.tell("bytes of messages under way")
        run, before = ours.next_run(), ours.used()
        messages = 5 * CONVERSATIONS
        ours.accept([ours.message("answered", run, n, n % CONVERSATIONS) for n in range(messages)])
        note = f"{messages} accepted, none begun, {CONVERSATIONS} conversations, texts of about 70 characters"
        yield Row("cost", "bytes for a message under way", "bytes", (ours.used() - before) / messages, note=note)


def _counted(ours: Ours, work: Callable[[], object]) -> Counter[str]:
    """The commands of some work, without those of idle processes and of looking for the end."""
    before, began = Counter(ours.commands()), time.monotonic()
    time.sleep(IDLE_S)
    idle = Counter(ours.commands()) - before
    idle_s = time.monotonic() - began
    before, polls, began = Counter(ours.commands()), ours.polls, time.monotonic()
    work()
    spent = Counter(ours.commands()) - before
    seconds = time.monotonic() - began
    spent["hget"] -= ours.polls - polls
    for name, calls in idle.items():
        spent[name] -= round(calls * seconds / idle_s)
    return spent


def _commands(what: str, calls: Counter[str], messages: int, most: float, trouble: Trouble) -> Row:
    parts = ", ".join(f"{name} {count / messages:.1f}" for name, count in calls.most_common(MOST_TOLD))
    return Row(
        "cost",
        what,
        "commands",
        calls.total() / messages,
        target=Target("at most", most, "ours"),
        trouble=trouble,
        note=parts,
    )


def _batches(ours: Ours, run: str, batches: int) -> None:
    for batch in range(batches):
        ours.accept([ours.message("silenced", run, batch * BATCH + n, batch) for n in range(BATCH)])
        ours.rest()


def _indexes(ours: Ours) -> float:
    now = ours.process.clock.now_ms()
    before = ours.used()
    for number in range(INDEXES):
        index = OutboundIndex(ours.process.scripts, f"{ACCOUNT}-{number}", ours.settings.index)
        for entry in range(ours.settings.index.max_entries):
            index.add(IndexEntry("chat", "x" * TYPICAL, now, now, (f"id-{entry:06}",)), now, f"{number}-{entry}")
    return (ours.used() - before) / INDEXES
