"""A whole bridge with nothing but Python: `BRIDGE_SECRET=change-me python whatsapp_bridge.py URL [PORT]`.

URL is the account's webhook (`https://…/hooks/ACCOUNT`). Every line of standard input is posted there, signed: write
the argument of Baileys' `messages.upsert` as one line of JSON. Answers come to `http://127.0.0.1:PORT/answers` (8701),
are checked, and printed. Replace `deliver` with your client's `sendMessage(chat, {text}, {quoted})`.
"""

import hashlib
import hmac
import json
import os
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = os.environ.get("BRIDGE_SECRET", "").encode()
MAX_AGE_S = 300
LARGEST = 1_000_000


def signature(secret: bytes, stamp: str, body: bytes) -> str:
    return "sha256=" + hmac.new(secret, stamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def signed(secret: bytes, body: bytes, now_s: int) -> dict[str, str]:
    stamp = str(now_s)
    return {"x-millstream-timestamp": stamp, "x-millstream-signature": signature(secret, stamp, body)}


def genuine(secret: bytes, stamp: str, given: str, body: bytes, now_s: float) -> bool:
    if not secret or not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12):
        return False
    right = signature(secret, stamp, body)
    return (
        hmac.compare_digest(given.encode("utf-8", "replace"), right.encode()) and abs(now_s - int(stamp)) <= MAX_AGE_S
    )


def post(url: str, body: bytes) -> int:
    headers = {"content-type": "application/json", **signed(SECRET, body, int(time.time()))}
    with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=10) as answer:  # noqa: S310
        return answer.status


def deliver(answer: dict[str, Any]) -> str:
    """Send it, once for each `nonce`, and give the id that WhatsApp gave it: later quotes are found by it."""
    print(json.dumps(answer, ensure_ascii=False), flush=True)  # noqa: T201
    return "3EB0" + hashlib.sha256(answer["nonce"].encode()).hexdigest()[:18].upper()


class Answers(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > LARGEST:
            self.send_error(413)
            return
        body = self.rfile.read(int(length))
        stamp = self.headers.get("X-Millstream-Timestamp", "")
        given = self.headers.get("X-Millstream-Signature", "")
        if self.path != "/answers":
            self.send_error(404)
        elif not genuine(SECRET, stamp, given, body, time.time()):
            self.send_error(401)
        else:
            answer = json.dumps({"id": deliver(json.loads(body))}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)


if __name__ == "__main__":
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 8701
    server = ThreadingHTTPServer(("127.0.0.1", port), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for line in sys.stdin:
        if line.strip():
            post(sys.argv[1], line.strip().encode())
    threading.Event().wait()  # no more events: answers still come
