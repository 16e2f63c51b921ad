"""Feishu's wire: messages and replies. A reply's request does not name the chat."""

import json
from typing import Any
from urllib.parse import unquote

from shared.channels.reading import map_of, maps_of, text_of
from workers.ops.scenario.result import SentRow
from workers.ops.scenario.wires.wire import Body, Wire


def _row(account: str, url: str, body: Body) -> SentRow:
    content = map_of(json.loads(str(body.get("content", "{}"))))
    return SentRow(
        text=_post(content) if body.get("msg_type") == "post" else text_of(content.get("text")),
        chat=str(body.get("receive_id", "")),
        reply_to=_replied(url),
        account=account,
    )


def _post(content: dict[str, Any]) -> str:
    """A post's lines as a reader sees them."""
    rows = map_of(content.get("zh_cn")).get("content")
    lines = [maps_of(row) for row in rows] if isinstance(rows, list) else []  # pyright: ignore[reportUnknownVariableType]
    return "\n".join("".join(text_of(element.get("text")) for element in line) for line in lines)


def _replied(url: str) -> str | None:
    parts = url.split("?", 1)[0].rsplit("/", 2)
    return unquote(parts[1]) if parts[-1] == "reply" else None


def _success(url: str, body: Body, number: int, now_ms: int) -> Body:
    data: dict[str, Any] = {"message_id": f"om_{number}", "create_time": str(now_ms), "msg_type": body.get("msg_type")}
    if (replied := _replied(url)) is not None:
        data |= {"parent_id": replied, "root_id": replied}
    else:
        data["chat_id"] = body.get("receive_id")
    return {"code": 0, "msg": "success", "data": data}


def _refusal(status: int, retry_after_s: float | None) -> Body:
    del retry_after_s
    return {"code": 99991400 if status == 429 else 230002, "msg": "scripted"}


def _took(answer: Any) -> bool:
    return map_of(answer).get("code") == 0


WIRE = Wire(
    _row,
    _success,
    _refusal,
    _took,
    login={"code": 0, "msg": "ok", "tenant_access_token": "t-scripted", "expire": 7200},
)
