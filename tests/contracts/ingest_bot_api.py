"""A Bot API on loopback for the poll's tests: getUpdates with confirmation by offset, and scripted answers."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route


class BotApi:
    """`updates` are those not confirmed. `script` holds answers (status, JSON or bytes) that are given first."""

    def __init__(self) -> None:
        self.updates = list[dict[str, Any]]()
        self.asked = list[dict[str, Any]]()
        self.tokens = set[str]()
        self.script = list[tuple[int, Any]]()
        self.changed = asyncio.Event()
        self.url = ""

    def push(self, *updates: dict[str, Any]) -> None:
        self.updates += updates
        self.changed.set()

    async def answer(self, request: Request) -> Response:
        wanted = await request.json()
        self.asked.append(wanted)
        self.tokens.add(request.path_params["token"])
        self.changed.set()
        if self.script:
            status, body = self.script.pop(0)
            return Response(body, status) if isinstance(body, bytes) else JSONResponse(body, status)
        if "offset" in wanted:
            self.updates = [u for u in self.updates if u.get("update_id", 0) >= wanted["offset"]]
        with suppress(TimeoutError):
            async with asyncio.timeout(wanted["timeout"]):
                while not self.updates:
                    self.changed.clear()
                    await self.changed.wait()
        return JSONResponse({"ok": True, "result": self.updates[: wanted["limit"]]})

    async def until_asked(self, times: int) -> None:
        async with asyncio.timeout(20):
            while len(self.asked) < times:
                self.changed.clear()
                await self.changed.wait()


@asynccontextmanager
async def bot_api() -> AsyncIterator[BotApi]:
    api = BotApi()
    application = Starlette(routes=[Route("/bot{token}/getUpdates", api.answer, methods=["POST"])])
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        api.url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        config = uvicorn.Config(application, lifespan="off", log_config=None, timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        sock.listen()
        serving = asyncio.create_task(server.serve([sock]))
        try:
            yield api
        finally:
            server.should_exit = True
            api.push({"update_id": 1})
            await serving
