"""A program that is the other side of the mock channel: takes what is sent, answers at once, remembers it.

Prints its port. `GET /seen` gives what came since the last look: a list of [chat, reply_to, text].
"""

import asyncio
import json
import os
import sys
from typing import Any

_TOOK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: "


class Platform(asyncio.Protocol):
    """One connection, kept."""

    def __init__(self, seen: list[list[Any]]) -> None:
        self._seen = seen
        self._buffer = b""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep it."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each request that is whole."""
        self._buffer += data
        while True:
            head, mark, rest = self._buffer.partition(b"\r\n\r\n")
            if not mark:
                return
            length = 0
            for line in head.split(b"\r\n")[1:]:
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            if len(rest) < length:
                return
            self._buffer = rest[length:]
            body = self._answer(head, rest[:length])
            self._transport.write(_TOOK + str(len(body)).encode() + b"\r\n\r\n" + body)

    def _answer(self, head: bytes, body: bytes) -> bytes:
        if head.startswith(b"GET"):
            told = json.dumps(self._seen).encode()
            self._seen.clear()
            return told
        said = json.loads(body)
        if said["type"] == "message":
            self._seen.append([said["chat"], said["reply_to"], said["text"]])
        return b'{"id": "%s"}' % said.get("nonce", "").encode()


async def serve() -> None:
    """Serve until standard input closes."""
    loop, seen = asyncio.get_running_loop(), list[list[Any]]()
    server = await loop.create_server(lambda: Platform(seen), "127.0.0.1", 0)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await asyncio.to_thread(os.read, sys.stdin.fileno(), 1)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve())
