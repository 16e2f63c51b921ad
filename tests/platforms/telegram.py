"""An emulated Bot API: checks what it is sent, serves updates to one poller, pushes webhooks.

python -m tests.platforms.telegram --port N --log FILE
"""

import json
import time
from pathlib import Path
from typing import Any

from tests.platforms.emulator import Answer, Asked, Emulator, Refuse, main, post

TOKEN = "7100000042:invented-token"
SECRET = "invented_secret-Token_01"
ME = {"id": 7100000042, "is_bot": True, "first_name": "Tidewatch", "username": "tidewatch_bot"}


class Telegram(Emulator):
    """The methods that Millstream calls. `files`: path to bytes, served by getFile under the id equal to the path."""

    def __init__(self, port: int = 0, log: Path | None = None) -> None:
        self.updates: list[dict[str, Any]] = []
        self.files: dict[str, bytes] = {}
        self.webhook = False
        self._polls = 0
        self._ids = 9000
        super().__init__(port, log)

    def refusal(self, status: int, text: str) -> Answer:
        return Answer(status, {"ok": False, "error_code": status, "description": text})

    def handle(self, asked: Asked) -> Answer:
        if asked.path.startswith(f"/file/bot{TOKEN}/"):
            data = self.files.get(asked.path.removeprefix(f"/file/bot{TOKEN}/"))
            return Answer(200, data) if data is not None else self.refusal(404, "Not Found")
        method = asked.path.removeprefix(f"/bot{TOKEN}/")
        if method == asked.path:
            raise Refuse(401, "Unauthorized")
        body = asked.json() if asked.body else {k: json.loads(v) for k, v in asked.query.items()}
        match method:
            case "getMe":
                return _ok(ME)
            case "getUpdates":
                return self._get_updates(body)
            case "getFile":
                path = body.get("file_id")
                if path not in self.files:
                    raise Refuse(400, "Bad Request: invalid file_id")
                return _ok({"file_id": path, "file_path": path, "file_size": len(self.files[path])})
            case "sendMessage":
                return self._send(body)
            case "sendChatAction" | "setMessageReaction":
                _chat(body)
                self.note(method, body)
                return _ok(True)
        raise Refuse(404, "Not Found")

    def push(self, event: dict[str, Any]) -> None:
        """An update for the poller."""
        with self.changed:
            self.updates.append(event)
            self.changed.notify_all()

    def call_webhook(self, url: str, update: dict[str, Any], secret: str = SECRET) -> int:
        """Post an update as Telegram does; returns the status."""
        return post(url, json.dumps(update).encode(), {"X-Telegram-Bot-Api-Secret-Token": secret})

    def _send(self, body: dict[str, Any]) -> Answer:
        _chat(body)
        text = body.get("text")
        if not isinstance(text, str) or not text.strip():
            raise Refuse(400, "Bad Request: message text is empty")
        units = len(text.encode("utf-16-le")) // 2
        if units > 4096:
            raise Refuse(400, "Bad Request: message is too long")
        for entity in body.get("entities", []):
            if entity["offset"] < 0 or entity["length"] < 1 or entity["offset"] + entity["length"] > units:
                raise Refuse(400, "Bad Request: can't parse entities: out of the text")
        reply = body.get("reply_parameters")
        if reply is not None and not isinstance(reply.get("message_id"), int):
            raise Refuse(400, "Bad Request: message to be replied not found")
        thread = body.get("message_thread_id")
        if thread is not None and not isinstance(thread, int):
            raise Refuse(400, "Bad Request: message thread not found")
        with self.changed:
            self._ids += 1
            number = self._ids
        self.note("sendMessage", body)
        return _ok({"message_id": number, "chat": {"id": body["chat_id"]}, "date": int(time.time()), "text": text})

    def _get_updates(self, body: dict[str, Any]) -> Answer:
        with self.changed:
            if self.webhook:
                raise Refuse(409, "Conflict: can't use getUpdates method while webhook is active")
            self._polls += 1
            mine = self._polls
            self.changed.notify_all()
            offset = body.get("offset")
            if isinstance(offset, int):
                self.updates = [update for update in self.updates if update["update_id"] >= offset]
            self.changed.wait_for(
                lambda: bool(self.updates) or self._polls != mine or self.closing.is_set(), body.get("timeout", 0)
            )
            if self._polls != mine:
                raise Refuse(409, "Conflict: terminated by other getUpdates request; one bot, one poller")
            return _ok(self.updates[: body.get("limit", 100)])


def _ok(result: Any) -> Answer:
    return Answer(200, {"ok": True, "result": result})


def _chat(body: dict[str, Any]) -> None:
    if not isinstance(body.get("chat_id"), int):
        raise Refuse(400, "Bad Request: chat not found")


if __name__ == "__main__":
    main(Telegram)
