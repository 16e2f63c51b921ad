"""Events that a bridge posts: a program of the operator's beside a messenger that has no webhook of its own. Pure.

Both ways the sender signs: `x-millstream-signature` is `sha256=` and the hex HMAC-SHA256, under the account's
`credentials.secret`, of the header `x-millstream-timestamp` (Unix seconds), a dot, and the raw body.
"""

import hashlib
import hmac
from typing import Final

from shared.channels.port import HookRequest
from shared.errors import Unauthorised
from shared.settings import AccountSettings

WINDOW_S: Final = 300
"""How far the signed time may lie from now, as for Slack's signatures (channel facts, Slack, "Signature")."""


def verify(request: HookRequest, account: AccountSettings, now_ms: int) -> None:
    """Raises Unauthorised unless the bridge signed the request within `WINDOW_S`; an account that says `insecure` and
    has no secret takes everything."""
    secret = account.credential("secret")
    if not secret:
        if account.insecure:
            return
        raise Unauthorised("no secret is configured")
    stamp = request.headers.get("x-millstream-timestamp", "")
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12):
        raise Unauthorised("no time is signed")
    if abs(now_ms - int(stamp) * 1000) > WINDOW_S * 1000:
        raise Unauthorised("the signed time is too far away")
    came = request.headers.get("x-millstream-signature", "").encode("utf-8", "replace")
    if not hmac.compare_digest(came, _signature(secret, stamp, request.body)):
        raise Unauthorised("the signature does not hold")


def signed(secret: str, body: bytes, now_s: int) -> dict[str, str]:
    """The two headers that vouch for `body` at `now_s` (Unix seconds)."""
    stamp = str(now_s)
    return {"x-millstream-timestamp": stamp, "x-millstream-signature": _signature(secret, stamp, body).decode()}


def _signature(secret: str, stamp: str, body: bytes) -> bytes:
    return b"sha256=" + hmac.new(secret.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest().encode()
