"""WhatsApp's events: verification, handshake, and which of the two forms an event has. Pure."""

import hashlib
import hmac
from collections.abc import Callable

from shared.channels import bridge
from shared.channels.port import HookRequest, HookResponse, Json
from shared.channels.reading import required_map
from shared.channels.whatsapp import cloud, web
from shared.errors import Malformed, Unauthorised
from shared.message import Message
from shared.settings import AccountSettings


def verify(request: HookRequest, account: AccountSettings, now_ms: int) -> None:
    """cloud: X-Hub-Signature-256 over the raw bytes, or, for the handshake, the verify token. web: the bridge's
    signature. Meta signs no time, so `now_ms` matters to the bridge only.

    Raises Unauthorised, also where the secret is not configured while the account is not `insecure`.
    """
    if account.variant == "web":
        bridge.verify(request, account, now_ms)
        return
    name = "verify_token" if request.method == "GET" else "app_secret"
    secret = account.credential(name)
    if not secret:
        if account.insecure:
            return
        raise Unauthorised(f"the account has no credentials.{name}")
    if request.method == "GET":
        given, right = request.query.get("hub.verify_token", ""), secret
    else:
        given = request.headers.get("x-hub-signature-256", "")
        right = "sha256=" + hmac.new(secret.encode(), request.body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(given.encode("utf-8", "replace"), right.encode()):
        raise Unauthorised("the signature or token does not match")


def handshake(request: HookRequest, account: AccountSettings) -> HookResponse | None:
    """Meta's GET wants `hub.challenge` back; any other GET is no event either."""
    if request.method != "GET":
        return None
    challenge = request.query.get("hub.challenge", "")
    if account.variant == "web" or request.query.get("hub.mode") != "subscribe" or not challenge:
        return HookResponse(400)
    return HookResponse(200, challenge)


def normalise(event: Json, account: AccountSettings) -> list[Message]:
    """All messages of one event, whose own shape tells its form. Raises Malformed.

    cloud: every entry, change and message (C-10). web: the argument of Baileys' `messages.upsert`; what else it emits
    (`messages.update`, a list, repeats an edit that was told before) gives none. One message that cannot be read costs
    the others nothing; Malformed is raised when there is no other.
    """
    if isinstance(event, list):
        return []
    outer = required_map(event, "the event")
    if "entry" in outer or "object" in outer:
        return _readable(cloud.readers(outer, account))
    return _readable(web.readers(outer, account))


def _readable(readers: list[Callable[[], Message | None]]) -> list[Message]:
    found: list[Message] = []
    fault: Malformed | None = None
    for read in readers:
        try:
            message = read()
        except Malformed as error:
            fault = error
            continue
        if message is not None:
            found.append(message)
    if fault is not None and not found:
        raise fault
    return found
