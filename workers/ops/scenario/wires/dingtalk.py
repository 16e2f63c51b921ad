"""DingTalk's wire: the sessionWebhook, and the robot API."""

import json
from collections.abc import Mapping
from typing import Any, cast

from workers.ops.scenario.result import SentRow
from workers.ops.scenario.wires.wire import Body, Wire


def _row(account: str, url: str, body: Body) -> SentRow:
    """A webhook's address alone says where it leads, by a code that names no chat: `chat` stays empty."""
    del url
    if "msgParam" not in body:
        return SentRow(text=str((body.get("markdown") or {}).get("text", "")), chat="", account=account)
    words: Mapping[str, Any] = json.loads(body["msgParam"])
    chat = body.get("openConversationId") or next(iter(body.get("userIds") or ()), "")
    return SentRow(text=str(words.get("text", "")), chat=str(chat), account=account)


def _success(url: str, body: Body, number: int, now_ms: int) -> Body:
    del url, now_ms
    return {"processQueryKey": f"pqk{number}"} if "msgParam" in body else {"errcode": 0, "errmsg": "ok"}


def _refusal(status: int, retry_after_s: float | None) -> Body:
    """Both kinds of error at once: an errcode for the webhook, a code for the robot API."""
    del retry_after_s
    limited = status == 429
    return {
        "errcode": 130101 if limited else 300001,
        "errmsg": "scripted",
        "code": "Forbidden.AccessDenied.QpsLimitForApi" if limited else "scripted",
        "message": "scripted",
    }


def _took(answer: Any) -> bool:
    if not isinstance(answer, Mapping):
        return False
    said = cast("Mapping[str, Any]", answer)
    return said.get("errcode") == 0 or bool(said.get("processQueryKey"))


WIRE = Wire(_row, _success, _refusal, _took, login={"accessToken": "at-invented", "expireIn": 7200})
