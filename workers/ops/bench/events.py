"""The events that are sent, and their webhook requests. Pure."""

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from typing import Any, Final, Literal

Kind = Literal["answered", "silenced"]

ACCOUNT: Final = "bench"
"""The mock account; the pipeline's scenes use it."""
SIGNED: Final = "signed"
"""The Slack account: its webhooks carry an HMAC, for the scene of ingest alone."""
PEOPLE: Final = 400
"""Members. A guest has one turn at a time, and the rest of a burst would be throttled instead of answered."""
_TEXT = re.compile(r"message (\d+) of run (\w+) ")


def person(number: int) -> str:
    """A member's id."""
    return f"p{number % PEOPLE}"


def text(run: str, number: int) -> str:
    """A text of an ordinary length, without any word that the gate answers to."""
    return f"message {number} of run {run} is of an ordinary length, as people write them"


def number_in(said: str) -> tuple[str, int] | None:
    """Run and number of a text made by `text`, wherever it stands; None for another text."""
    found = _TEXT.search(said)
    return (found[2], int(found[1])) if found else None


def message_id(run: str, number: int) -> str:
    """The platform's id of a message."""
    return f"{run}-{number}"


def event(kind: Kind, run: str, number: int, conversation: int) -> dict[str, Any]:
    """An event of the mock channel: a member's private message, or a remark of one of seven people in a group."""
    made = {"message_id": message_id(run, number), "sender": person(conversation), "text": text(run, number)}
    if kind == "silenced":
        made |= {"sender": f"m{number % 7}", "chat": f"g{conversation}", "chat_type": "group"}
    return made


def signed_event(run: str, number: int) -> dict[str, Any]:
    """An event of Slack: a message in a channel."""
    inner = {
        "type": "message", "channel": f"C{number % PEOPLE:08}", "channel_type": "channel", "user": "U00000001",
        "text": text(run, number), "ts": f"{1_700_000_000 + number}.{int(run, 36) % 1_000_000:06}",
    }  # fmt: skip
    return {"type": "event_callback", "event_id": f"Ev{run}{number}", "event": inner}


def signature(secret: str, body: bytes, now_s: int) -> dict[str, str]:
    """Slack's headers for a body."""
    mac = hmac.new(secret.encode(), b"v0:" + str(now_s).encode() + b":" + body, hashlib.sha256)
    return {"X-Slack-Request-Timestamp": str(now_s), "X-Slack-Signature": f"v0={mac.hexdigest()}"}


def request(account: str, body: bytes, headers: Mapping[str, str]) -> bytes:
    """A whole POST to an account's webhook, on a connection that is kept."""
    lines = [
        f"POST /hooks/{account} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json",
        f"Content-Length: {len(body)}", *(f"{name}: {value}" for name, value in headers.items()),
    ]  # fmt: skip
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def requests(order: Mapping[str, Any], now_s: int) -> list[list[bytes]]:
    """The requests of an order of `load`, a list for each connection; a conversation's stay on one, in order."""
    lists: list[list[bytes]] = [[] for _ in range(order["connections"])]
    for number in range(order["messages"]):
        conversation = number % order["conversations"]
        if order["account"] == SIGNED:
            body = json.dumps(signed_event(order["run"], number)).encode()
            made = request(SIGNED, body, signature(order["secret"], body, now_s))
        else:
            body = json.dumps(event(order["kind"], order["run"], number, conversation)).encode()
            made = request(order["account"], body, {})
        lists[conversation % len(lists)].append(made)
    return lists
