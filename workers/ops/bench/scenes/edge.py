"""Ingest alone: webhooks a second of one process, signature checked, beside an app that only checks and pushes."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx

from workers.ops.bench import programs
from workers.ops.bench.chains import push_app
from workers.ops.bench.events import SIGNED
from workers.ops.bench.figures import Row, Target, Trouble, in_turn, middle
from workers.ops.bench.sizes import Bench
from workers.ops.bench.stack import SECRET, Ours, Shape, free_port
from workers.ops.bench.venvs import NotMade
from workers.ops.output import fail

CONNECTIONS = 64
UP_S = 30.0
PEER = "starlette"
LIST = "bench-hooks"


def edge(bench: Bench) -> Iterator[Row]:
    """Both on one server, one process each, the same requests, in turn."""
    hooks, mine, theirs, why = bench.sizes.hooks, list[float](), list[float](), ""
    accepted = pushed = 0
    with Ours(bench.folder, Shape(workers=False)) as ours, ExitStack() as ending:
        load = ending.enter_context(programs.ours("load", ours.log.fileno()))
        port = free_port()
        bench.tell("ingest alone")
        try:
            ending.enter_context(push_app(ours.server.url, LIST, SECRET, port, ours.log.fileno()))
            _await(ours, port)
        except NotMade as error:
            why = str(error)
        before = ours.left()
        for number in range(bench.sizes.hook_rounds):
            bench.tell(f"ingest alone, round {number + 1}")
            told = _post(load, ours, ours.port, hooks)
            accepted += told["accepted"]
            mine.append(told["accepted"] / told["seconds"])
            if not why:
                told = _post(load, ours, port, hooks)
                theirs.append(told["accepted"] / told["seconds"])
                pushed += told["accepted"]
        trouble = Trouble(lost=accepted - (ours.left() - before))
        peer_trouble = Trouble(lost=max(pushed - int(ours.client.llen(LIST)), 0))
    yield Row(
        "edge", "ingest alone, one process, signature checked", "webhooks/s", middle(mine), PEER,
        middle(theirs), Target("at least", 0.6), trouble, peer_trouble,
        f"{CONNECTIONS} connections, {hooks} webhooks a round", why, in_turn(mine, theirs),
    )  # fmt: skip


def _post(load: programs.Program, ours: Ours, port: int, hooks: int) -> dict[str, Any]:
    order = {
        "port": port, "account": SIGNED, "secret": SECRET, "kind": "answered", "run": ours.next_run(),
        "messages": hooks, "conversations": CONNECTIONS, "connections": CONNECTIONS,
    }  # fmt: skip
    load.ask(order)
    return load.ask({})


def _await(ours: Ours, port: int) -> None:
    """Until the bare app takes webhooks."""
    deadline = time.monotonic() + UP_S
    while True:
        try:
            httpx.get(f"http://127.0.0.1:{port}/", timeout=2.0, trust_env=False)
        except httpx.HTTPError:
            if time.monotonic() > deadline:
                fail(f"the bare Starlette app did not come up: see {ours.log.name}")
            time.sleep(0.05)
        else:
            return
