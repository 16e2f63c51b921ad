"""What an OpenAI-compatible endpoint answers, as replies of the loopback server."""

import json
from typing import Any, Literal

from tests.platforms.harness_server import Reply, reply, stream


def chunk(content: str | None = None, finish: str | None = None) -> bytes:
    """One `chat.completion.chunk` as a server-sent event."""
    delta = {} if content is None else {"role": "assistant", "content": content}
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    return event(json.dumps(body, ensure_ascii=False).encode())


def event(data: bytes) -> bytes:
    """`data` as a server-sent event."""
    return b"data: " + data + b"\n\n"


DONE = event(b"[DONE]")


def completion(*pieces: str) -> Reply:
    """A whole streamed completion, one chunk a piece."""
    return stream(*(chunk(piece) for piece in pieces), chunk(finish="stop"), DONE)


def broken(*pieces: str, then: Literal["close", "reset", "hold"]) -> Reply:
    """A stream that does not get to its end."""
    return stream(*(chunk(piece) for piece in pieces), then=then, ended=False)


def refusal(status: int, code: str = "", message: str = "no", **headers: str) -> Reply:
    """An error answer in OpenAI's form."""
    return reply(status, {"error": {"message": message, "type": "invalid_request_error", "code": code}}, **headers)
