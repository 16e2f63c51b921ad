"""The mock's wire: its callback."""

from workers.ops.scenario.result import SentRow
from workers.ops.scenario.wires.wire import Body, Wire, text_or_none


def _row(account: str, url: str, body: Body) -> SentRow:
    del url
    return SentRow(
        text=str(body.get("text", "")),
        chat=str(body.get("chat", "")),
        thread=text_or_none(body.get("thread")),
        reply_to=text_or_none(body.get("reply_to")),
        account=account,
    )


def _success(url: str, body: Body, number: int, now_ms: int) -> Body:
    del url, body, now_ms
    return {"ok": True, "id": f"mock-{number}"}


def _refusal(status: int, retry_after_s: float | None) -> Body:
    del retry_after_s
    return {"ok": False, "error": "ratelimited" if status == 429 else "scripted"}


WIRE = Wire(_row, _success, _refusal, took=lambda answer: True)
