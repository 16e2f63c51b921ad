"""An emulated Slack: the Web API methods that Millstream calls, files, and signed event callbacks.

python -m tests.platforms.slack --port N --log FILE
"""

import hashlib
import hmac
import json
import re
import time
from pathlib import Path
from typing import Any

from tests.platforms.emulator import Answer, Asked, Emulator, Refuse, main, post

TOKEN = "xoxb-invented-token"
SIGNING_SECRET = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
ME = {"ok": True, "user": "tidebot", "user_id": "U07TIDEBOT", "bot_id": "B07TIDEBOT", "team_id": "T07TIDE1XA"}


class Slack(Emulator):
    """`messages`: what the channels hold, by channel, for history and replies. `files`: path to bytes."""

    def __init__(self, port: int = 0, log: Path | None = None) -> None:
        self.messages: dict[str, list[dict[str, Any]]] = {}
        self.files: dict[str, bytes] = {}
        self._sent = 0
        super().__init__(port, log)

    def refusal(self, status: int, text: str) -> Answer:
        return Answer(status, {"ok": False, "error": text})

    def handle(self, asked: Asked) -> Answer:
        if asked.headers.get("authorization") != f"Bearer {TOKEN}":
            raise Refuse(200, "invalid_auth")
        if asked.path in self.files:
            return Answer(200, self.files[asked.path])
        match asked.path.removeprefix("/"):
            case "auth.test":
                return Answer(body=ME)
            case "chat.postMessage":
                return self._post(asked.json())
            case "conversations.history":
                return self._history(asked.query)
            case "conversations.replies":
                return self._replies(asked.query)
            case "reactions.add" | "reactions.remove" as method:
                self.note(method, asked.json())
                return Answer(body={"ok": True})
        raise Refuse(200, "unknown_method")

    def callback(self, url: str, event: dict[str, Any], secret: str = SIGNING_SECRET, **headers: str) -> int:
        """Post an event callback, signed as of now; returns the status."""
        body = json.dumps(event).encode()
        stamp = str(int(time.time()))
        signature = hmac.new(secret.encode(), b"v0:" + stamp.encode() + b":" + body, hashlib.sha256).hexdigest()
        signed = {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={signature}"}
        return post(url, body, signed | {name.replace("_", "-"): value for name, value in headers.items()})

    def _post(self, body: dict[str, Any]) -> Answer:
        text, channel = body.get("text"), body.get("channel")
        if not isinstance(channel, str) or not channel:
            raise Refuse(200, "channel_not_found")
        if not isinstance(text, str) or not text.strip():
            raise Refuse(200, "no_text")
        if len(text) > 40_000:
            raise Refuse(200, "msg_too_long")
        if re.search(r"<[!@#]", text):
            raise Refuse(200, "ping_not_defused")  # not Slack's: Millstream must never send one
        thread = body.get("thread_ts")
        if thread is not None and not re.fullmatch(r"\d+\.\d{6}", str(thread)):
            raise Refuse(200, "invalid_thread_ts")
        with self.changed:
            self._sent += 1
            ts = f"1790100000.{self._sent:06d}"
        self.note("chat.postMessage", body)
        return Answer(body={"ok": True, "channel": channel, "ts": ts, "message": {"text": text, "ts": ts}})

    def _history(self, query: dict[str, str]) -> Answer:
        """Newest first, top level only, within [oldest, latest]."""
        found = [
            message
            for message in self.messages.get(query.get("channel", ""), [])
            if query.get("oldest", "0") <= message["ts"] <= query.get("latest", "9")
            and message.get("thread_ts", message["ts"]) == message["ts"]
        ]
        found.sort(key=lambda message: message["ts"], reverse=True)
        return Answer(body={"ok": True, "messages": found[: int(query.get("limit", "100"))], "has_more": False})

    def _replies(self, query: dict[str, str]) -> Answer:
        """The root first, whatever the bounds, then the replies within them."""
        root = query.get("ts")
        thread = [
            message
            for message in self.messages.get(query.get("channel", ""), [])
            if root in (message["ts"], message.get("thread_ts"))
        ]
        if not thread:
            raise Refuse(200, "thread_not_found")
        found = [
            message
            for message in sorted(thread, key=lambda message: message["ts"])
            if message["ts"] == root or query.get("oldest", "0") <= message["ts"] <= query.get("latest", "9")
        ]
        return Answer(body={"ok": True, "messages": found[: int(query.get("limit", "1000"))], "has_more": False})


if __name__ == "__main__":
    main(Slack)
