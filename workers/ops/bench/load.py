"""A program that posts webhooks as fast as they are taken: raw sockets, so that it is not what is measured.

One JSON order a line: {port, account, secret, kind, run, messages, conversations, connections}. It answers
{"ready": true} once all requests are made, waits for another line, sends, and answers {began, seconds, accepted,
refused, failed}. A request that is refused with 503 is sent again after its `Retry-After`, as platforms do.
"""

import asyncio
import json
import sys
import time
from dataclasses import dataclass, field
from typing import Any, Final, cast

from workers.ops.bench.events import requests

GIVE_UP_S: Final = 600.0


@dataclass(slots=True)
class Told:
    """What the requests came to. `refused` counts answers 503; `failed` holds every other status but 200, and
    `closed` and `unreachable`. tasks: those under way, so that none is forgotten."""

    accepted: int = 0
    refused: int = 0
    failed: dict[str, int] = field(default_factory=dict[str, int])
    tasks: set["asyncio.Task[None]"] = field(default_factory=set["asyncio.Task[None]"])


class Connection(asyncio.Protocol):
    """A request, its answer, the next. It connects when there is something to send: a server closes idle connections,
    and one that refuses is left alone until it may be asked again."""

    def __init__(self, port: int, waiting: list[bytes], told: Told) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._port = port
        self._waiting = waiting
        self._next = 0
        self._told = told
        self._buffer = b""
        self._transport: asyncio.Transport | None = None
        self._asked = False

    async def connect(self) -> None:
        """Open it; what it still had to send has failed when nobody listens."""
        try:
            await asyncio.get_running_loop().create_connection(lambda: self, "127.0.0.1", self._port)
        except OSError:
            self._failed("unreachable", len(self._waiting) - self._next)
            self._next = len(self._waiting)
            self.close()

    async def send(self) -> None:
        """Send the next request, or be done."""
        if self._next == len(self._waiting):
            self.close()
            return
        if self._transport is None:
            await self.connect()
        if self._transport is not None:
            self._asked = True
            self._transport.write(self._waiting[self._next])

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep it."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Take the answer once it is whole."""
        self._buffer += data
        head, mark, rest = self._buffer.partition(b"\r\n\r\n")
        if not mark:
            return
        fields = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:])
        if len(rest) < int(fields.get(b"content-length", b"0")):
            return
        self._buffer, self._asked = b"", False
        status = head.split(b" ", 2)[1].decode()
        if status == "503":
            self._told.refused += 1
            self._hang_up()
            asyncio.get_running_loop().call_later(float(fields.get(b"retry-after", b"1")), self.go_on)
            return
        if status == "200":
            self._told.accepted += 1
        else:
            self._failed(status, 1)
        self._next += 1
        self.go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        """The request that had no answer has failed; nobody knows whether it was taken."""
        del exc
        self._transport = None
        if self._asked and not self.done.done():
            self._asked = False
            self._failed("closed", 1)
            self._next += 1
            self.go_on()

    def go_on(self) -> None:
        """Send the next request as soon as this callback has returned."""
        if self._transport is not None and self._next < len(self._waiting):
            self._asked = True
            self._transport.write(self._waiting[self._next])
            return
        task = asyncio.get_running_loop().create_task(self.send())
        self._told.tasks.add(task)
        task.add_done_callback(self._told.tasks.discard)

    def close(self) -> None:
        """Be done."""
        self._hang_up()
        if not self.done.done():
            self.done.set_result(None)

    def _hang_up(self) -> None:
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def _failed(self, why: str, count: int) -> None:
        self._told.failed[why] = self._told.failed.get(why, 0) + count


async def post(port: int, lists: list[list[bytes]]) -> dict[str, Any]:
    """Send every list over a connection of its own; returns when each request has its last answer."""
    told = Told()
    made = [Connection(port, waiting, told) for waiting in lists]
    for connection in made:
        await connection.connect()
    began = time.monotonic()
    for connection in made:
        connection.go_on()
    await asyncio.wait([connection.done for connection in made], timeout=GIVE_UP_S)
    seconds = time.monotonic() - began
    for connection in made:
        connection.close()
    return {
        "began": began, "seconds": seconds, "accepted": told.accepted, "refused": told.refused, "failed": told.failed,
    }  # fmt: skip


def main() -> None:
    """Serve orders until standard input closes."""
    for line in sys.stdin:
        order = json.loads(line)
        lists = requests(order, int(time.time()))
        print(json.dumps({"ready": True}), flush=True)
        sys.stdin.readline()
        print(json.dumps(asyncio.run(post(order["port"], lists))), flush=True)


if __name__ == "__main__":
    main()
