"""A peer's chain under test: its worker processes and its sender, on a server of their own."""

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from shared.redis.client import connect
from shared.redis.embedded import Embedded
from workers.ops.bench import venvs
from workers.ops.bench.cpu import cpu_s, since
from workers.ops.bench.figures import Rate
from workers.ops.bench.peers.driver import ENDS, STEPS
from workers.ops.bench.programs import Program
from workers.ops.bench.truth import of_ends
from workers.ops.output import fail

PROGRAMS: Final = Path(__file__).parent / "peers"
LONGEST_S: Final = 120.0
UP_S: Final = 60.0
LOOK_S: Final = 0.02
CHAINS: Final = ("celery", "dramatiq", "taskiq")
"""In the order in which they are measured; the targets compare with the first."""


class Chain:
    """A context manager. Raises NotMade when the peer cannot be installed, and Failed when it does not come up."""

    def __init__(self, peer: str, folder: Path) -> None:
        self.peer = peer
        self._folder = Path(tempfile.mkdtemp(dir=folder))
        self._pids: list[int] = []
        self._ending = ExitStack()

    def __enter__(self) -> Self:
        python = str(venvs.python_of(self.peer))
        program = str(PROGRAMS / f"{self.peer}_chain.py")
        with ExitStack() as ending:
            server = ending.enter_context(Embedded.start(self._folder / "server", durable=False))
            log = ending.enter_context((self._folder / "peer.log").open("wb"))
            environment = {"BENCH_REDIS_URL": server.url, "PYTHONWARNINGS": "ignore"}
            self._client = connect(server.url)
            ending.callback(self._client.close)
            for step in range(1, STEPS + 1):
                worker = Program(
                    f"{self.peer} {step}", [python, program, "worker", str(step)], log.fileno(), environment
                )
                self._pids.append(ending.enter_context(worker).pid)
            self._sender = ending.enter_context(
                Program(self.peer, [python, program, "send"], log.fileno(), environment)
            )  # fmt: skip
            self._pids += [server.pid, self._sender.pid]
            if self.rate(1, 1, UP_S).trouble.lost:
                fail(f"the workers of {self.peer} did not come up: see {log.name}")
            self._ending = ending.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.close()

    def rate(self, messages: int, conversations: int, within_s: float = LONGEST_S) -> Rate:
        """Send messages as fast as they can be published and wait for the last end."""
        self._client.delete(ENDS)
        before_s, began = cpu_s(self._pids), time.monotonic()
        self._sender.ask({"ids": [str(number) for number in range(messages)]})
        while (ended := self._client.llen(ENDS)) < messages and time.monotonic() - began < within_s:
            time.sleep(LOOK_S)
        seconds = time.monotonic() - began
        computed_s = since(before_s, cpu_s(self._pids))
        ids = [row.split()[0] for row in self._client.lrange(ENDS, 0, -1)]
        cpu_ms = None if computed_s is None or not ended else computed_s * 1000 / ended
        return Rate(ended / seconds, of_ends(ids, messages, conversations), cpu_ms)

    def latencies_ms(self, messages: int, pause_s: float) -> list[float]:
        """From just before the publish to the last step's run, one message at a time."""
        self._sender.order({"one_by_one": messages, "pause_s": pause_s})
        return list(self._sender.answer()["latencies_ms"])


def push_app(url: str, into: str, secret: str, port: int, log: int) -> Program:
    """Start the bare Starlette app, which pushes into the list `into`. It ends with its context, and answers no orders.
    Raises NotMade."""
    python = str(venvs.python_of("starlette"))
    command = [python, str(PROGRAMS / "starlette_push.py"), str(port)]
    return Program("starlette", command, log, {"BENCH_REDIS_URL": url, "BENCH_LIST": into, "BENCH_SECRET": secret})
