"""Weixin's wire: sendmessage."""

from collections.abc import Mapping
from typing import Any

from workers.ops.scenario.result import SentRow
from workers.ops.scenario.wires.wire import Body, Wire


def _row(account: str, url: str, body: Body) -> SentRow:
    """Weixin has neither threads nor quotes by bots: the context token alone ties a reply to its message."""
    del url
    message: Mapping[str, Any] = body.get("msg") or {}
    texts = [str((item.get("text_item") or {}).get("text", "")) for item in message.get("item_list") or []]
    return SentRow(text="\n".join(texts), chat=str(message.get("to_user_id", "")), account=account)


def _success(url: str, body: Body, number: int, now_ms: int) -> Body:
    """The id's high bits are the time, as the platform's own are."""
    del url, body
    return {"message_id": now_ms << 22 | number}


def _refusal(status: int, retry_after_s: float | None) -> Body:
    del retry_after_s
    return {"ret": -2, "errmsg": "rate limited" if status == 429 else "scripted"}


def _took(answer: object) -> bool:
    """No `ret`, or 0; and an older server's empty object."""
    return isinstance(answer, Mapping) and not answer.get("ret") and not answer.get("errcode")  # pyright: ignore[reportUnknownMemberType]


WIRE = Wire(_row, _success, _refusal, _took)
