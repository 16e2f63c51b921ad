"""A worker process: its context, the runner, and Celery around it."""

import asyncio
import os
import random
import socket
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import httpx
import structlog
from celery import Celery, signals

from shared import metrics
from shared.channels import BUILT
from shared.channels.http import HttpApi, new_client
from shared.channels.port import Call, Json, PlatformApi, PlatformResponse
from shared.harness import build as build_harness
from shared.harness.loops import PerLoop
from shared.harness.port import Harness
from shared.logging import configure
from shared.outcome import STAGES, Stage
from shared.process import Process, build, follow
from shared.sessions import Sessions
from shared.settings import CONFIG_FILE, AccountSettings, Settings, load
from workers.app import make_app, register, worker_argv
from workers.context import Context, harness_settings
from workers.deadletters import store
from workers.moves import slots
from workers.pipeline import BY_NAME
from workers.probe import Probe, Silent
from workers.runner import Runner
from workers.stages import PLANS

log = structlog.get_logger()

GRACE_S: Final = 30.0
"""After TERM: what a stage other than dispatch may still take; dispatch has its harness's `timeout_s` more."""


class LoopApi:
    """The network of one account, through the running loop's own client."""

    def __init__(self, account: AccountSettings, clients: PerLoop[httpx.AsyncClient]) -> None:
        self._account = account
        self._clients = clients

    async def request(
        self,
        call: Call,
        method: str,
        url: str,
        *,
        ref: str = "",
        headers: Mapping[str, str] | None = None,
        json: Json = None,
        params: Mapping[str, str] | None = None,
        data: Mapping[str, str] | None = None,
        timeout_s: float = 10.0,
        max_bytes: int = 4_194_304,
    ) -> PlatformResponse:
        """Send one request; see `shared.channels.port.PlatformApi`."""
        client = await self._clients.get()
        api = HttpApi(self._account.id, self._account.channel, metrics.request_hook(self._account.channel), client)
        return await api.request(
            call, method, url, ref=ref, headers=headers, json=json, params=params, data=data, timeout_s=timeout_s,
            max_bytes=max_bytes,
        )  # fmt: skip


def network() -> Callable[[AccountSettings], PlatformApi]:
    """The network of every account of this process."""
    clients = PerLoop(new_client, lambda client: client.aclose())
    return lambda account: LoopApi(account, clients)


def context(process: Process, name: str, probe: Probe | None = None) -> Context:
    """The context of a worker process."""
    sessions = Sessions(process.client, process.clock, process.keys.prefix)
    harnesses: dict[tuple[str, int], Harness] = {}

    def harness(wanted: str) -> Harness:
        version = process.config.version
        if (wanted, version) not in harnesses:
            settings = process.config.settings.harness_named(wanted)
            harnesses[wanted, version] = build_harness(wanted, settings, sessions)
        return harnesses[wanted, version]

    return Context(
        client=process.client,
        keys=process.keys,
        scripts=process.scripts,
        clock=process.clock,
        config=process.config,
        switches=process.switches,
        access=process.access,
        sessions=sessions,
        beats=process.beats,
        server=process.server,
        probe=probe or Silent(),
        rng=random.Random(),  # noqa: S311 - jitter only
        api=network(),
        harness=harness,
        log_key=process.log_key,
        name=name,
    )


class Guard:
    """What the guarded consumer asks: where to put what is not ours, and whether it is needed at all."""

    def __init__(self, ctx: Context, stages: int) -> None:
        self._ctx = ctx
        self._stages = stages

    def hot(self) -> bool:
        """True while tasks take their wake-ups themselves. Where several stages share the process, one that is busy
        must not keep the others' from coming."""
        return self._stages == 1 and self._ctx.clock.monotonic() < self._ctx.hot_until

    def poison(self, raw: bytes, queue: str, reason: str) -> None:
        """Keep it as a raw dead letter."""
        store.poison(self._ctx, raw, queue, reason)
        log.warning("poison", queue=queue, reason=reason)


class Loops:
    """One event loop a thread of the pool."""

    def __init__(self) -> None:
        self._local = threading.local()

    def run(self, work: Any) -> None:
        """Run a coroutine to its end in this thread's loop."""
        runner = getattr(self._local, "runner", None)
        if runner is None:
            runner = self._local.runner = asyncio.Runner()
        runner.run(work)


def _made(
    settings: Settings, stages: tuple[Stage, ...], name: str, probe: Probe | None = None
) -> tuple[Process, Context, Celery]:
    """A process of these stages, ready to consume: nothing runs in it yet."""
    process = build(settings)
    metrics.start(stages, BUILT, slots(process.config.settings))
    ctx = context(process, f"{name}@{socket.gethostname()}", probe)
    runner, loops = Runner(ctx, PLANS), Loops()
    app = make_app(settings.redis.url, settings.redis.prefix, Guard(ctx, len(stages)))
    for stage in stages:
        register(app, stage, _task(loops, runner, stage))
    return process, ctx, app


def _begin(
    settings: Settings, process: Process, ctx: Context, stages: tuple[Stage, ...], stop: threading.Event
) -> None:
    """Start what runs beside the stages: the beat, the configuration's follower, the metrics, the ear for TERM."""
    process.beats.start()
    threading.Thread(target=follow, args=(process, stop), name="follow", daemon=True).start()
    if settings.metrics.port:
        serve_metrics(settings)
    _end_on_term(ctx, stages)


def run_worker(settings: Settings, stage: Stage, *more: Stage, concurrency: int = 0, probe: Probe | None = None) -> int:
    """Be a worker of one stage, or of several in one process, until TERM; returns the exit code."""
    stages = (stage, *more)
    specs = [BY_NAME[one] for one in stages]
    name, stop = "+".join(stages), threading.Event()
    process, ctx, app = _made(settings, stages, name, probe)
    _begin(settings, process, ctx, stages, stop)
    pool = "threads" if any(spec.pool == "threads" for spec in specs) else "solo"
    threads = concurrency or sum(spec.concurrency for spec in specs)
    queues = ",".join(spec.queue for spec in specs)
    app.worker_main([*worker_argv(stage, pool, threads, name), f"--queues={queues}"])
    stop.set()
    process.beats.stop()
    return 0


def _task(loops: Loops, runner: Runner, stage: Stage) -> Callable[[str], None]:
    return lambda wanted: loops.run(runner.run(stage, wanted))


def celery_app() -> Celery:
    """The application for `celery -A workers.app worker -Q wake.STAGE`: configured as every other command, from
    millstream.toml in the working folder, secret files and the environment; it knows every stage."""
    path = Path(os.environ.get(CONFIG_FILE, "millstream.toml"))
    settings = load(path if path.exists() else None, os.environ)
    configure(settings.log)
    process, ctx, app = _made(settings, STAGES, "celery")

    def begin(**_: object) -> None:
        _begin(settings, process, ctx, STAGES, threading.Event())

    signals.worker_init.connect(begin, weak=False)
    return app


def serve_metrics(settings: Settings) -> None:
    """Answer /metrics; a port that is taken (several workers on one host) is told and does not matter."""
    try:
        metrics.serve(settings.metrics.port, settings.ingest.host)
    except OSError:
        log.info("metrics_port_taken", port=settings.metrics.port)


def _end_on_term(ctx: Context, stages: tuple[Stage, ...]) -> None:
    """On TERM nothing new is taken; turns that may be repeated are handed back at `drain_s`; the rest runs on."""

    def draining(**_: object) -> None:
        ctx.draining = True
        if "dispatch" in stages:
            timer = threading.Timer(ctx.settings.pipeline.drain_s, _hand_back, (ctx,))
            timer.daemon = True
            timer.start()

    signals.worker_shutting_down.connect(draining, weak=False)


def _hand_back(ctx: Context) -> None:
    for hold in ctx.beats.held():
        name = _harness_of(ctx, hold.ids) if hold.name.startswith("turn:") else None
        if name and harness_settings(ctx.settings, name) is not None and ctx.harness(name).idempotent:
            hold.tell("drain")


def _harness_of(ctx: Context, id_: str) -> str:
    return ctx.client.hget(ctx.keys.record(id_), "harness") or "default"
