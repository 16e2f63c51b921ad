"""The other side of the demo on loopback: Telegram and Slack as far as the story needs them, and an assistant."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

MAX_BODY: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that a platform took from Millstream. `asked_by`: the message it answers, as `CHAT:MESSAGE`."""

    text: str
    asked_by: str


class Platforms:
    """A server on a free port of 127.0.0.1. `refuse_once`: what the assistant says no to the first time it is asked."""

    def __init__(self, refuse_once: str) -> None:
        self._refuse_once = refuse_once
        self._refused: set[str] = set()
        self._sent: list[Sent] = []
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _handler(self._answer))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1})
        self._thread.start()

    @property
    def url(self) -> str:
        """The server's address; the platforms are below it."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def replies_to(self, key: str) -> list[str]:
        """What was sent in answer to a message, in order."""
        with self._lock:
            return [sent.text for sent in self._sent if sent.asked_by == key]

    def _answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        match path.rsplit("/", 1)[-1]:
            case "sendMessage":
                asked = body.get("reply_parameters", {}).get("message_id", "")
                number = self._keep(body["text"], f"{body['chat_id']}:{asked}")
                return 200, {"ok": True, "result": {"message_id": 9000 + number}}
            case "chat.postMessage":
                number = self._keep(body["text"], f"{body['channel']}:{body.get('thread_ts', '')}")
                return 200, {"ok": True, "ts": f"1790000900.{number:06d}"}
            case "conversations.history":
                return 500, {"ok": False, "error": "internal_error"}
            case "turns":
                return self._turn(body)
            case _:
                return 200, {"ok": True, "result": True}

    def _keep(self, text: str, asked_by: str) -> int:
        with self._lock:
            self._sent.append(Sent(text, asked_by))
            return len(self._sent)

    def _turn(self, turn: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """The assistant: says what it was asked, and what it knows of the quote."""
        text, quote = turn["text"], turn.get("reply_to")
        with self._lock:
            first = turn["turn_id"] not in self._refused
            self._refused.add(turn["turn_id"])
        if text == self._refuse_once and first:
            return 400, {"error": "not today"}
        if quote is None:
            reply = f"You asked: {text}"
        elif quote.get("content"):
            reply = f"You asked about “{quote['content']}”: {text}"
        else:
            reply = f"You asked: {text} (the quote could not be read)"
        return 200, {"parts": [{"type": "text", "text": reply}]}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: who hung up (a sign of typing that came too late) needs no answer any more."""


def _handler(answer: Callable[[str, dict[str, Any]], tuple[int, dict[str, Any]]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply({})

        def do_POST(self) -> None:
            length = min(int(self.headers.get("content-length", "0")), MAX_BODY)
            self._reply(json.loads(self.rfile.read(length) or b"{}"))

        def _reply(self, body: dict[str, Any]) -> None:
            status, answered = answer(self.path.split("?", 1)[0], body)
            raw = json.dumps(answered).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
            """Nothing: the story's table is what is to be read."""

    return Handler
