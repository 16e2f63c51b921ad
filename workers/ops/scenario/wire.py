"""What the channels' real send requests say, and what their platforms answer to one that succeeds. Pure."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from workers.ops.scenario.result import SentRow

Body = Mapping[str, Any]

FIRST_ID: Final = 900_000
"""Invented ids of sent messages begin above those that a scenario writes by hand."""


def row_of(channel: str, account: str, body: Body) -> SentRow:
    """The text of a send request as a reader sees it, and where it goes. Raises KeyError for a channel not built."""
    return _ROWS[channel](account, body)


def success_of(channel: str, body: Body, serial: int, now_ms: int) -> Body:
    """The platform's own answer to a send that it took, with an invented id that grows with `serial`."""
    return _SUCCESSES[channel](body, FIRST_ID + serial, now_ms)


def refusal_of(channel: str, status: int, retry_after_s: float | None) -> Body:
    """A body that fits an HTTP status which the scenario gives alone."""
    if channel == "telegram":
        body: dict[str, Any] = {"ok": False, "error_code": status, "description": "scripted"}
        return body if retry_after_s is None else body | {"parameters": {"retry_after": retry_after_s}}
    return {"ok": False, "error": "ratelimited" if status == 429 else "scripted"}


def took(channel: str, answer: Any) -> bool:
    """Whether a 2xx answer says that the message was taken."""
    says_ok = channel in ("telegram", "slack")
    return not says_ok or (isinstance(answer, Mapping) and answer.get("ok") is True)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _telegram_row(account: str, body: Body) -> SentRow:
    quoted = body.get("reply_parameters") or {}
    return SentRow(
        text=str(body.get("text", "")),
        chat=str(body.get("chat_id", "")),
        thread=_text(body.get("message_thread_id")),
        reply_to=_text(quoted.get("message_id")),
        account=account,
    )


def _slack_row(account: str, body: Body) -> SentRow:
    """In Slack the thread's root is both: where the message goes and what it answers. Its three escapes are undone."""
    root = _text(body.get("thread_ts"))
    text = str(body.get("text", "")).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return SentRow(text=text, chat=str(body.get("channel", "")), thread=root, reply_to=root, account=account)


def _mock_row(account: str, body: Body) -> SentRow:
    return SentRow(
        text=str(body.get("text", "")),
        chat=str(body.get("chat", "")),
        thread=_text(body.get("thread")),
        reply_to=_text(body.get("reply_to")),
        account=account,
    )


def _telegram_success(body: Body, number: int, now_ms: int) -> Body:
    chat = {"id": body.get("chat_id"), "type": "private"}
    return {
        "ok": True,
        "result": {"message_id": number, "date": now_ms // 1000, "chat": chat, "text": body.get("text")},
    }


def _slack_success(body: Body, number: int, now_ms: int) -> Body:
    ts = f"{now_ms // 1000}.{number:06d}"
    return {"ok": True, "channel": body.get("channel"), "ts": ts, "message": {"ts": ts, "text": body.get("text")}}


def _mock_success(body: Body, number: int, now_ms: int) -> Body:
    del body, now_ms
    return {"ok": True, "id": f"mock-{number}"}


_ROWS: Final[Mapping[str, Callable[[str, Body], SentRow]]] = {
    "telegram": _telegram_row,
    "slack": _slack_row,
    "mock": _mock_row,
}
_SUCCESSES: Final[Mapping[str, Callable[[Body, int, int], Body]]] = {
    "telegram": _telegram_success,
    "slack": _slack_success,
    "mock": _mock_success,
}
