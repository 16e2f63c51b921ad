"""Discord's wire: Create Message."""

from collections.abc import Mapping
from typing import Any

from workers.ops.scenario.result import SentRow
from workers.ops.scenario.wires.wire import Body, Wire, text_or_none


def _row(account: str, url: str, body: Body) -> SentRow:
    """The channel is in the address; a thread is a channel of its own."""
    reference: Mapping[str, Any] = body.get("message_reference") or {}
    return SentRow(
        text=str(body.get("content", "")),
        chat=_channel(url),
        reply_to=text_or_none(reference.get("message_id")),
        account=account,
    )


def _success(url: str, body: Body, number: int, now_ms: int) -> Body:
    del now_ms
    return {"id": str(number), "channel_id": _channel(url), "content": body.get("content"), "nonce": body.get("nonce")}


def _refusal(status: int, retry_after_s: float | None) -> Body:
    if status == 429:
        return {"message": "You are being rate limited.", "retry_after": retry_after_s or 0.0, "global": False}
    return {"message": "scripted", "code": 0}


def _took(answer: object) -> bool:
    return isinstance(answer, Mapping) and bool(answer.get("id"))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]


def _channel(url: str) -> str:
    """`…/channels/CHANNEL/messages`."""
    return url.partition("?")[0].rpartition("/messages")[0].rpartition("/")[2]


WIRE = Wire(_row, _success, _refusal, _took)
