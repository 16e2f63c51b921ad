"""Telegram's wire: sendMessage."""

from typing import Any

from workers.ops.scenario.result import SentRow
from workers.ops.scenario.wires.wire import Body, Wire, says_ok, text_or_none


def _row(account: str, url: str, body: Body) -> SentRow:
    del url
    quoted = body.get("reply_parameters") or {}
    return SentRow(
        text=str(body.get("text", "")),
        chat=str(body.get("chat_id", "")),
        thread=text_or_none(body.get("message_thread_id")),
        reply_to=text_or_none(quoted.get("message_id")),
        account=account,
    )


def _success(url: str, body: Body, number: int, now_ms: int) -> Body:
    del url
    chat = {"id": body.get("chat_id"), "type": "private"}
    return {
        "ok": True,
        "result": {"message_id": number, "date": now_ms // 1000, "chat": chat, "text": body.get("text")},
    }


def _refusal(status: int, retry_after_s: float | None) -> Body:
    body: dict[str, Any] = {"ok": False, "error_code": status, "description": "scripted"}
    return body if retry_after_s is None else body | {"parameters": {"retry_after": retry_after_s}}


WIRE = Wire(_row, _success, _refusal, says_ok)
