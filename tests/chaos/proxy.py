"""A network between a host and the server that can lose everything for a while.

    python -m tests.chaos.proxy PORT    prints its own port; reads `cut` and `mend`, a line each; ends with its input

While it is cut, nothing passes and nothing is hung up: connections stay open on both sides, new ones are taken by the
kernel and hear nothing. Mended, what was under way arrives late and in order, hang-ups included, as TCP repeats it.
"""

import asyncio
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

CHUNK = 65_536
HOST = "127.0.0.1"


class Network:
    """All connections of one host."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._passes = asyncio.Event()
        self._passes.set()

    def steer(self, order: str) -> None:
        if order == "cut":
            self._passes.clear()
        elif order == "mend":
            self._passes.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._passes.wait()
        try:
            far_reader, far_writer = await asyncio.open_connection(HOST, self._port)
        except OSError:
            writer.transport.abort()
            return
        await asyncio.gather(self._carry(reader, far_writer), self._carry(far_reader, writer))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                await self._passes.wait()
                writer.write(data)
                await writer.drain()
        await self._passes.wait()
        writer.close()


async def _main(port: int) -> None:
    network = Network(port)
    server = await asyncio.start_server(network.serve, HOST, 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        network.steer(line.strip())


@dataclass(frozen=True)
class Proxy:
    """A running one. `port`: where its host finds the server."""

    port: int
    process: "subprocess.Popen[str]"

    def cut(self) -> None:
        """Nothing passes from now on."""
        self._say("cut")

    def mend(self) -> None:
        """Everything passes again."""
        self._say("mend")

    def _say(self, order: str) -> None:
        assert self.process.stdin is not None
        print(order, file=self.process.stdin, flush=True)


@contextmanager
def proxied(port: int) -> Generator[Proxy]:
    """A proxy before the server at `port`, for the length of a test."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.chaos.proxy", str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    try:
        yield Proxy(int(process.stdout.readline()), process)
    finally:
        process.kill()
        process.communicate()


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1])))
