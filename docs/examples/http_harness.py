"""A whole HTTP harness with nothing but Python: `HARNESS_SECRET=change-me python http_harness.py 8700`.

Answers the last thing said, in capitals. Replace `think` with your agent; the contract is in docs/harness-http.md.
"""

import hashlib
import hmac
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = os.environ["HARNESS_SECRET"].encode()
MAX_AGE_S = 300


def think(turn: dict[str, Any]) -> list[dict[str, str]]:
    return [{"type": "text", "text": turn["text"].upper()}]


class Harness(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        timestamp = self.headers.get("X-Millstream-Timestamp", "0")
        signed = hmac.new(SECRET, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
        genuine = hmac.compare_digest(self.headers.get("X-Millstream-Signature", ""), f"v1={signed}")
        if not genuine or abs(time.time() - int(timestamp)) > MAX_AGE_S:
            self.send_error(401)
        elif self.path != "/turns":
            self.send_error(404)
        else:
            answer = json.dumps({"parts": think(json.loads(body))}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Harness)
    print(f"listening on http://127.0.0.1:{server.server_port}/turns", flush=True)  # noqa: T201
    server.serve_forever()
