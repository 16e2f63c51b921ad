"""The processes: all of them at once, or one alone; and events sent through them from a file."""

import asyncio
import logging
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import typer

from ingest.publisher import Publisher
from ingest.replay import Replay, Summary
from shared.channels import channel
from shared.logging import configure
from shared.outcome import STAGES, Stage
from shared.settings import Settings
from workers.context import Context
from workers.ops.output import DONE, FAILED, MISUSED, complain, console, dump, fail, say
from workers.ops.session import chosen_config, in_a_thread, read_settings, session, with_server

AT_ONCE: Final = 20
"""Bad lines that are printed; the rest is counted."""


def _ready(*, server: bool = True) -> Settings:
    """The settings of a process about to run, its log set up."""
    path = chosen_config()
    settings = read_settings(path)
    configure(settings.log)
    # Celery tells of every wake-up at INFO; a message's line is the stage's own.
    logging.getLogger("celery").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", message="You're running the worker with superuser", category=Warning)
    return with_server(settings, path) if server else settings


def up(
    compact: Annotated[bool, typer.Option("--compact", help="All stages in two workers, for a small machine.")] = False,
) -> None:
    """Run everything on this machine: a server where redis.url is empty, ingest, the workers, the keeper."""
    from workers.ops.up import run_up

    raise SystemExit(run_up(_ready(server=False), chosen_config(), compact=compact))


def ingest() -> None:
    """Run the edge: webhooks and connectors."""
    from ingest.process import run_ingest

    raise SystemExit(run_ingest(_ready()))


def worker(
    stages: Annotated[list[str], typer.Argument(metavar="STAGE...", help=", ".join(STAGES))],
    concurrency: Annotated[int, typer.Option(min=0, help="Threads; 0: the stage's own number.")] = 0,
) -> None:
    """Run a worker of one stage; several stages share one process."""
    wanted: list[Stage] = [_stage(name) for name in stages]
    settings = _ready()
    from workers.process import run_worker

    raise SystemExit(run_worker(settings, *wanted, concurrency=concurrency))


def _stage(name: str) -> Stage:
    known: dict[str, Stage] = {stage: stage for stage in STAGES}
    found = known.get(name)
    if found is None:
        fail(f"no stage {name}: there are {', '.join(STAGES)}", MISUSED)
    return found


def keeper() -> None:
    """Run the housekeeper; two may run, one of them works."""
    from workers.keeper.process import run_keeper

    raise SystemExit(run_keeper(_ready()))


def demo() -> None:
    """Play a short story through real processes and show what became of each message; nothing stays running."""
    from workers.ops.demo import run_demo

    raise SystemExit(run_demo())


def replay(
    file: Annotated[Path, typer.Argument(help="Saved events: one JSON object a line, with account and event.")],
    rate: Annotated[float, typer.Option(min=0.0, help="Events a second at most; 0: as fast as they are taken.")] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Send saved events through the pipeline as if they came now."""
    with session() as ctx:
        if not ctx.client.exists(ctx.keys.partitions):
            fail("nothing was ever started here: run `millstream up` first")
        progress = console(stderr=True)
        with progress.status("replaying") as status:

            def told(summary: Summary) -> None:
                status.update(f"replaying: {summary.events} events")

            summary = in_a_thread(lambda: _replayed(ctx, file, rate, told))
    if as_json:
        dump({
            "events": summary.events, "without_message": summary.silent, "ids": summary.ids,
            "bad": [str(line) for line in summary.bad],
        })  # fmt: skip
    else:
        say(f"{summary.events} events sent, {summary.silent} without a message, {len(summary.bad)} bad lines")
        for line in summary.bad[:AT_ONCE]:
            complain(str(line))
    raise typer.Exit(FAILED if summary.bad else DONE)


def _replayed(ctx: Context, file: Path, rate: float, told: Callable[[Summary], None]) -> Summary:
    partitions = int(ctx.client.get(ctx.keys.partitions))

    async def work() -> Summary:
        publisher = Publisher(ctx.client, ctx.scripts, lambda: ctx.settings, ctx.now_ms, partitions)
        replaying = Replay(
            ctx.account,
            channel,
            publisher,
            ctx.clock,
            ctx.settings.pipeline.retry,
            random.Random(),  # noqa: S311
        )
        return await replaying.run(file, rate, told)

    return asyncio.run(work())
