"""The edge behind a real socket: slow clients, large bodies, shutdown."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from ingest_support import MemoryPublisher, QuickClock, app, encode, mock_message, run

from ingest.server import serve
from shared.settings import IngestSettings

EVENT = encode(mock_message())


class AnyPort:
    host = "127.0.0.1"
    port = 0


def served(
    work: Callable[[int, asyncio.Event], Awaitable[None]], publisher: MemoryPublisher, clock: QuickClock | None = None
) -> None:
    async def main() -> None:
        stop = asyncio.Event()
        port = asyncio.get_running_loop().create_future()
        server = asyncio.create_task(serve(app(publisher, clock), AnyPort(), (), stop, port.set_result))
        await asyncio.wait((server, port), return_when=asyncio.FIRST_COMPLETED)
        try:
            await work(await port, stop)
        finally:
            stop.set()
            await server

    run(main)


async def send(port: int, *pieces: bytes, end: bool = False) -> tuple[int, bytes]:
    """Send the pieces on one connection and read the status and body of the first answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        with suppress(ConnectionError):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            if end:
                writer.write_eof()
        status = int((await reader.readline()).split()[1])
        length = 0
        while (line := await reader.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return status, await reader.readexactly(length)
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


def head(length: int | None, extra: bytes = b"") -> bytes:
    size = b"transfer-encoding: chunked" if length is None else b"content-length: %d" % length
    return b"POST /hooks/demo HTTP/1.1\r\nhost: 127.0.0.1\r\n" + size + b"\r\n" + extra + b"\r\n"


def test_a_posted_event_is_taken() -> None:
    publisher = MemoryPublisher()

    async def work(port: int, _: asyncio.Event) -> None:
        assert await send(port, head(len(EVENT)), EVENT[:10], EVENT[10:]) == (200, b"")

    served(work, publisher)
    assert len(publisher.messages) == 1


def test_a_client_that_does_not_send_its_body_gets_408() -> None:
    publisher = MemoryPublisher()

    async def work(port: int, _: asyncio.Event) -> None:
        status, body = await send(port, head(len(EVENT)), EVENT[:10])
        assert status == 408
        assert b"body_timeout" in body
        assert (await send(port, head(len(EVENT)), EVENT))[0] == 200

    served(work, publisher, QuickClock(speed=20))
    assert len(publisher.messages) == 1


def test_c21_a_declared_length_beyond_1_mib_is_refused_before_the_body() -> None:
    publisher = MemoryPublisher()

    async def work(port: int, _: asyncio.Event) -> None:
        status, body = await send(port, head(1_048_577))
        assert status == 413
        assert b"too_large" in body

    served(work, publisher)
    assert publisher.messages == []


def test_c21_an_undeclared_body_is_cut_off_at_1_mib() -> None:
    publisher = MemoryPublisher()
    chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"

    async def work(port: int, _: asyncio.Event) -> None:
        status, body = await send(port, head(None), *[chunk] * 16, b"1\r\n \r\n0\r\n\r\n")
        assert status == 413
        assert b"too_large" in body
        assert (await send(port, head(len(EVENT)), EVENT))[0] == 200

    served(work, publisher)
    assert len(publisher.messages) == 1


def test_a_client_that_goes_away_harms_nobody() -> None:
    publisher = MemoryPublisher()

    async def work(port: int, _: asyncio.Event) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head(len(EVENT)) + EVENT[:10])
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        assert (await send(port, head(len(EVENT)), EVENT))[0] == 200

    served(work, publisher)
    assert len(publisher.messages) == 1


JUNK = (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"GET\r\n\r\n", b"\r\n" * 50 + b"?? ?? ??\r\n\r\n")


@pytest.mark.parametrize("junk", JUNK)
def test_what_is_no_http_is_400_and_the_server_lives(junk: bytes) -> None:
    async def work(port: int, _: asyncio.Event) -> None:
        assert (await send(port, junk))[0] == 400
        assert (await send(port, head(len(EVENT)), EVENT))[0] == 200

    served(work, MemoryPublisher())


def test_a_stop_lets_the_request_under_way_finish_and_takes_no_new_one() -> None:
    publisher = MemoryPublisher()
    publisher.gate.clear()

    async def work(port: int, stop: asyncio.Event) -> None:
        request = asyncio.create_task(send(port, head(len(EVENT)), EVENT))
        await publisher.asked.wait()
        stop.set()
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionRefusedError:
                break
            writer.close()
            await asyncio.sleep(0.02)
        assert not request.done()
        publisher.gate.set()
        assert await request == (200, b"")

    served(work, publisher, QuickClock(speed=0.2))
    assert len(publisher.messages) == 1


def test_term_ends_server_and_what_runs_beside_it() -> None:
    async def main() -> None:
        ended = list[str]()

        async def beside(stop: asyncio.Event) -> None:
            await stop.wait()
            ended.append("beside")

        def listening(_: int) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

        await serve(app(MemoryPublisher()), AnyPort(), (beside,), None, listening)
        assert ended == ["beside"]

    run(main)


def test_a_taken_port_is_an_os_error() -> None:
    async def main() -> None:
        holder = await asyncio.start_server(lambda _, w: w.close(), "127.0.0.1", 0)
        port = holder.sockets[0].getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            await serve(app(MemoryPublisher()), IngestSettings(port=port))
        holder.close()
        await holder.wait_closed()

    run(main)


def test_a_failure_beside_the_server_ends_it_loudly() -> None:
    async def beside(_: asyncio.Event) -> None:
        raise RuntimeError("broken")

    async def main() -> None:
        with pytest.raises(ExceptionGroup):
            await serve(app(MemoryPublisher()), AnyPort(), (beside,))

    run(main)
