"""WeCom's wire: the response_url."""

from collections.abc import Mapping
from typing import Any, cast

from workers.ops.scenario.result import SentRow
from workers.ops.scenario.wires.wire import Body, Wire


def _row(account: str, url: str, body: Body) -> SentRow:
    """The address alone says which message is answered, by a code that names no chat: `chat` stays empty."""
    del url
    return SentRow(text=str((body.get("markdown") or {}).get("content", "")), chat="", account=account)


def _success(url: str, body: Body, number: int, now_ms: int) -> Body:
    del url, body, number, now_ms
    return {"errcode": 0, "errmsg": "ok"}


def _refusal(status: int, retry_after_s: float | None) -> Body:
    del retry_after_s
    return {"errcode": 45009 if status == 429 else 40058, "errmsg": "scripted"}


def _took(answer: Any) -> bool:
    return isinstance(answer, Mapping) and cast("Mapping[str, Any]", answer).get("errcode") == 0


WIRE = Wire(_row, _success, _refusal, _took)
