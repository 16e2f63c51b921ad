"""WhatsApp's wire: the Cloud API's messages, or the bridge of a linked device."""

import base64
from collections.abc import Mapping
from typing import Any

from workers.ops.scenario.result import SentRow
from workers.ops.scenario.wires.wire import Body, Wire, text_or_none


def _row(account: str, url: str, body: Body) -> SentRow:
    del url
    if "chat" in body:
        return SentRow(
            text=str(body.get("text", "")),
            chat=str(body["chat"]),
            thread=None,
            reply_to=text_or_none(body.get("reply_to")),
            account=account,
        )
    text, context = body.get("text") or {}, body.get("context") or {}
    return SentRow(
        text=str(text.get("body", "")),
        chat=_chat(body),
        thread=None,
        reply_to=text_or_none(context.get("message_id")),
        account=account,
    )


def _chat(body: Body) -> str:
    return str(body.get("to") or body.get("recipient") or "")


def _success(url: str, body: Body, number: int, now_ms: int) -> Body:
    del url, now_ms
    stanza = f"3EB0{number:016X}"
    if "chat" in body:
        return {"id": stanza}
    chat = _chat(body)
    peer = chat.encode()[:64]
    raw = b"\x1c\x18" + bytes([len(peer)]) + peer + b"\x15\x02\x00\x11\x18\x14" + stanza.encode() + b"\x00"
    return {
        "messaging_product": "whatsapp",
        "contacts": [{"input": chat, "wa_id": chat}],
        "messages": [{"id": "wamid." + base64.b64encode(raw).decode()}],
    }


def _refusal(status: int, retry_after_s: float | None) -> Body:
    del retry_after_s
    return {"error": {"code": 130429 if status == 429 else 100, "message": "scripted", "type": "OAuthException"}}


def _took(answer: Any) -> bool:
    return isinstance(answer, Mapping) and ("messages" in answer or "id" in answer)


WIRE = Wire(_row, _success, _refusal, _took)
