"""Peer: the least that a webhook must do. Verify the signature (Slack's v0, an HMAC over the raw bytes), LPUSH, 200."""

import hashlib
import hmac
import os
import sys
import threading
import time
from typing import Any

import redis.asyncio
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

SECRET = os.environ["BENCH_SECRET"].encode()
WINDOW_S = 300
LIST = os.environ["BENCH_LIST"]

client: Any = redis.asyncio.Redis.from_url(os.environ["BENCH_REDIS_URL"])


async def hook(request: Request) -> Response:
    """Nothing is parsed, nothing compared with what came before."""
    body, stamp = await request.body(), request.headers.get("x-slack-request-timestamp", "")
    right = "v0=" + hmac.new(SECRET, b"v0:" + stamp.encode() + b":" + body, hashlib.sha256).hexdigest()
    given = request.headers.get("x-slack-signature", "")
    if not stamp.isdigit() or abs(time.time() - int(stamp)) > WINDOW_S or not hmac.compare_digest(given, right):
        return Response(status_code=401)
    await client.lpush(LIST, body)
    return Response()


def _end_with_starter() -> None:
    os.read(sys.stdin.fileno(), 1)
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=_end_with_starter, daemon=True).start()
    app = Starlette(routes=[Route("/hooks/{account}", hook, methods=["POST"])])
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_config=None, access_log=False, lifespan="off")
