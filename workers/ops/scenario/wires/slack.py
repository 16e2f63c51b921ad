"""Slack's wire: chat.postMessage."""

from workers.ops.scenario.result import SentRow
from workers.ops.scenario.wires.wire import Body, Wire, says_ok, text_or_none


def _row(account: str, url: str, body: Body) -> SentRow:
    """In Slack the thread's root is both: where the message goes and what it answers. Its three escapes are undone."""
    del url
    root = text_or_none(body.get("thread_ts"))
    text = str(body.get("text", "")).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return SentRow(text=text, chat=str(body.get("channel", "")), thread=root, reply_to=root, account=account)


def _success(url: str, body: Body, number: int, now_ms: int) -> Body:
    del url
    ts = f"{now_ms // 1000}.{number:06d}"
    return {"ok": True, "channel": body.get("channel"), "ts": ts, "message": {"ts": ts, "text": body.get("text")}}


def _refusal(status: int, retry_after_s: float | None) -> Body:
    del retry_after_s
    return {"ok": False, "error": "ratelimited" if status == 429 else "scripted"}


WIRE = Wire(_row, _success, _refusal, says_ok)
