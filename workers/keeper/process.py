"""The keeper as a process: its tick, its lease's beat, its metrics."""

import signal
import threading
from contextlib import ExitStack

import structlog
from redis import exceptions as redis_errors

from shared import metrics
from shared.beats import Hold
from shared.channels import BUILT
from shared.process import build, follow
from shared.settings import Settings
from workers.keeper.keeper import TICK_S, Keeper
from workers.moves import slots
from workers.process import context, serve_metrics

log = structlog.get_logger()


def run_keeper(settings: Settings) -> int:
    """Be a keeper candidate until TERM; returns the exit code."""
    process = build(settings)
    metrics.start(["keeper"], BUILT, slots(process.config.settings))
    ctx = context(process, "keeper")
    keeper, stop = Keeper(ctx), threading.Event()

    def end(_number: int, _frame: object) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    process.beats.start()
    threading.Thread(target=follow, args=(process, stop), name="follow", daemon=True).start()
    if settings.metrics.port:
        serve_metrics(settings)
    name, token = keeper.lease()
    with ExitStack() as term:
        hold: Hold | None = None
        while not stop.wait(TICK_S):
            try:
                keeper.tick()
            except (redis_errors.RedisError, OSError) as error:
                log.warning("keeper_tick_failed", error=type(error).__name__)
            if keeper.elected and (hold is None or hold.lost):
                term.pop_all().close()
                hold = term.enter_context(process.beats.holding(name, token, settings.pipeline.lease_s, float("inf")))
    ctx.scripts.call("release", ctx.now_ms(), name=name, token=token, slots=slots(ctx.settings))
    process.beats.stop()
    return 0
