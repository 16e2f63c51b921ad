"""Far more at once than can be answered: every message must end, visibly, in order."""

from collections.abc import Iterator
from typing import Final

import httpx

from workers.ops.bench import programs, truth
from workers.ops.bench.figures import Row, Target
from workers.ops.bench.sizes import Bench
from workers.ops.bench.stack import Ours, Shape

EACH: Final = 100
"""Messages of one conversation: twice what may wait in its lane (`pipeline.lane_max`)."""
VISIBLE: Final = frozenset({"answered", "throttled", "duplicate"})
"""How they may end: throttled people are told so; a webhook that was taken, but answered 503 because it took too long,
comes again and is a duplicate."""


def overload(bench: Bench) -> Iterator[Row]:
    """All default bounds hold. What ingest refuses with 503 is sent again after `Retry-After`, as platforms do."""
    messages = bench.sizes.overload
    conversations = messages // EACH
    with programs.ours("platform", 2) as platform:
        port = platform.answer()["port"]
        with Ours(bench.folder, Shape(bounded=True), f"http://127.0.0.1:{port}/out") as ours:
            bench.tell(f"{messages:,} messages at once over {conversations} conversations")
            run = ours.next_run()
            told = ours.load("answered", run, messages, conversations, conversations)
            inside, ends = truth.answered(ours, run, told["accepted"], VISIBLE)
            seen = httpx.get(f"http://127.0.0.1:{port}/seen", trust_env=False).json()
            outside = truth.at_platform(seen, run, ends["answered"])
    words = ", ".join(f"{count} {word or 'without an end'}" for word, count in ends.most_common())
    note = f"{words}; {told['refused']} answers 503, sent again; {told['until_end']:.0f} s"
    if told["failed"]:
        note += f"; failed requests: {told['failed']}"
    disposed = sum(count for word, count in ends.items() if word not in truth.UNENDING)
    yield Row(
        "overload", f"dispositions of {messages:,} messages at once over {conversations} conversations", "", disposed,
        target=Target("at least", messages, "ours"), trouble=inside + outside, note=note,
    )  # fmt: skip
