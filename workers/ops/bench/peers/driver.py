"""What every peer program does: be the worker of one step of the chain, or send messages and say when they ended.

Run by the peer's own Python, so it imports nothing of ours. `PROGRAM worker STEP` works until it is ended;
`PROGRAM send` reads one JSON order a line and answers each with one JSON line:

    {"ids": [...]}                  publish these; answers when the last is published
    {"one_by_one": N, "pause_s": S} publish N, each after the end of the one before; answers their latencies in ms
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import redis

STEPS = 5
"""As many as a message of ours has stages on its way to an answer."""
URL = os.environ.get("BENCH_REDIS_URL", "")
ENDS = "bench-ends"
"""List: `id time` of every run of the last step, Unix nanoseconds, in that order."""
FLUSH_S = 0.02
LOOK_S = 0.002
LONGEST_S = 30.0


class Peer(Protocol):
    """A task queue under test."""

    def work(self, step: int) -> None:
        """Be the worker of `step` (1 to STEPS) for ever."""
        ...

    def send(self, ids: Sequence[str]) -> None:
        """Publish the first step's task for each id."""
        ...


class Ends:
    """Notes ends in memory and writes them down beside the work, so that the last step stays a no-op."""

    def __init__(self) -> None:
        self._client: Any = redis.Redis.from_url(URL)
        self._waiting: list[str] = []
        self._lock = threading.Lock()
        threading.Thread(target=self._run, daemon=True).start()

    def note(self, id_: str) -> None:
        """The chain of `id_` has ended."""
        with self._lock:
            self._waiting.append(f"{id_} {time.time_ns()}")

    def _run(self) -> None:
        while True:
            time.sleep(FLUSH_S)
            with self._lock:
                ready, self._waiting = self._waiting, []
            if ready:
                self._client.rpush(ENDS, *ready)


def end_with_starter() -> None:
    """Wait until whoever started this process closes its input or is gone, then end at once."""
    os.read(sys.stdin.fileno(), 1)
    os._exit(0)


def main(make: Callable[[Callable[[str], None]], Peer]) -> None:
    """Do what the command line says. `make` builds the peer; it is given what the last step calls."""
    if sys.argv[1] == "worker":
        threading.Thread(target=end_with_starter, daemon=True).start()
        make(Ends().note).work(int(sys.argv[2]))
        return
    peer, client = make(lambda _: None), redis.Redis.from_url(URL)
    for line in sys.stdin:
        order: dict[str, Any] = json.loads(line)
        if "ids" in order:
            peer.send(order["ids"])
            print(json.dumps({"published": len(order["ids"])}), flush=True)
        else:
            print(json.dumps({"latencies_ms": _one_by_one(peer, client, order)}), flush=True)


def _one_by_one(peer: Peer, client: Any, order: dict[str, Any]) -> list[float]:
    found: list[float] = []
    for number in range(order["one_by_one"]):
        before = client.llen(ENDS)
        started = time.time_ns()
        peer.send([f"alone-{number}"])
        deadline = time.monotonic() + LONGEST_S
        while client.llen(ENDS) == before:
            if time.monotonic() > deadline:
                raise TimeoutError("a message did not end")
            time.sleep(LOOK_S)
        ended = int(client.lindex(ENDS, -1).split()[1])
        found.append((ended - started) / 1e6)
        time.sleep(order["pause_s"])
    return found
