"""Feishu's events: verification, handshake and normalisation. Pure."""

import hashlib
import hmac
import json
import re

from shared.channels.body import parse_json
from shared.channels.feishu.content import Mention, mentions_of, ms_of, said_of
from shared.channels.feishu.crypto import opened
from shared.channels.feishu.limits import WINDOW_MS
from shared.channels.feishu.quotes import reference_of
from shared.channels.port import HookRequest, HookResponse, Json
from shared.channels.reading import id_of, map_of, required_id, required_map, text_of
from shared.errors import Malformed, Unauthorised
from shared.message import Message
from shared.settings import AccountSettings

_STAMP = re.compile(r"\d{1,12}", re.ASCII)


def verify(request: HookRequest, account: AccountSettings, now_ms: int) -> None:
    """Check the signature over the raw bytes, its time stamp's window of 300 s, and the token inside.

    A handshake is not signed: the token vouches for it, or that it was encrypted with our key. Without
    `credentials.encrypt_key` nothing but the token protects the webhook, so only an `insecure` account goes without
    the key; a configured `credentials.verification_token` must hold there too. Raises Unauthorised.
    """
    key = account.credential("encrypt_key")
    token = account.credential("verification_token")
    if not key and not account.insecure:
        raise Unauthorised("the account has no credentials.encrypt_key")
    if key and "x-lark-signature" not in request.headers:
        _check_handshake(request, account, token)
        return
    if key:
        _check_signature(request, key, now_ms)
    if token:
        _check_token(_body_of(request, account), token)


def _check_handshake(request: HookRequest, account: AccountSettings, token: str) -> None:
    body = _body_of(request, account)
    if body.get("type") != "url_verification" or not text_of(body.get("challenge")):
        raise Unauthorised("the request is not signed")
    if token:
        _check_token(body, token)
    elif "encrypt" not in map_of(parse_json(request.body)):
        raise Unauthorised("nothing vouches for the handshake")


def _check_signature(request: HookRequest, key: str, now_ms: int) -> None:
    """SHA-256 of time stamp, nonce, encrypt key and body: a keyed hash, no HMAC."""
    stamp = request.headers.get("x-lark-request-timestamp", "")
    if not _STAMP.fullmatch(stamp):
        raise Unauthorised("the time stamp is missing or no number")
    if abs(now_ms - int(stamp) * 1000) > WINDOW_MS:
        raise Unauthorised("the time stamp is too far from now")
    nonce = request.headers.get("x-lark-request-nonce", "")
    base = (stamp + nonce + key).encode("utf-8", "replace") + request.body
    given = request.headers.get("x-lark-signature", "").encode("utf-8", "replace")
    if not hmac.compare_digest(given, hashlib.sha256(base).hexdigest().encode()):
        raise Unauthorised("the signature does not match")


def _check_token(body: dict[str, Json], token: str) -> None:
    given = text_of(map_of(body.get("header")).get("token")) or text_of(body.get("token"))
    if not hmac.compare_digest(given.encode(), token.encode("utf-8", "replace")):
        raise Unauthorised("the verification token does not match")


def _body_of(request: HookRequest, account: AccountSettings) -> dict[str, Json]:
    try:
        return opened(parse_json(request.body), account)
    except Malformed:
        raise Unauthorised("the body cannot be opened") from None


def handshake(request: HookRequest, account: AccountSettings) -> HookResponse | None:
    """`url_verification`, encrypted or not, wants its challenge back as JSON."""
    if b'"encrypt"' not in request.body and b"url_verification" not in request.body:
        return None
    try:
        body = opened(parse_json(request.body), account)
    except Malformed:
        return None
    challenge = text_of(body.get("challenge"))
    if body.get("type") != "url_verification" or not challenge:
        return None
    return HookResponse(200, json.dumps({"challenge": challenge}), "application/json")


def normalise(event: Json, account: AccountSettings) -> list[Message]:
    """The message of an event in the 2.0 form, encrypted or not; other events give none. Raises Malformed.

    Keys: the message id, which every try and every connection has in common, then the event id (C-20: both count within
    the account, since two bots in one group get the same message id).
    """
    outer = opened(event, account)
    header = map_of(outer.get("header"))
    # What only claims to be a handshake was verified as one: it is never a message.
    if header.get("event_type") != "im.message.receive_v1" or outer.get("type") == "url_verification":
        return []
    inner = required_map(outer.get("event"), "event")
    message = required_map(inner.get("message"), "message")
    message_id = required_id(message.get("message_id"), "message_id")
    chat_id = required_id(message.get("chat_id"), "chat_id")
    sender = map_of(inner.get("sender"))
    senders = _ids_of(map_of(sender.get("sender_id")))
    if not senders:
        raise Malformed("the sender is missing")
    app_id = id_of(header.get("app_id")) or account.credential("app_id")
    me = account.all_self_ids
    private = message.get("chat_type") == "p2p"
    raw, kind = text_of(message.get("content")), text_of(message.get("message_type"))
    mentions = mentions_of(message)
    said = said_of(kind, raw, mentions, me, message_id)
    named = any(not me.isdisjoint(mention.ids) for mention in mentions)
    own = not (me | {app_id, account.self_app_id} - {""}).isdisjoint(senders)
    event_id = id_of(header.get("event_id"))
    return [
        Message(
            channel="feishu",
            account=account.id,
            message_id=message_id,
            keys=(f"message_id:{message_id}", *((f"event_id:{event_id}",) if event_id else ())),
            chat_id=chat_id,
            chat_type="private" if private else "group",
            thread_id=id_of(message.get("thread_id")),
            sender_id=senders[0],
            sender_is_bot=sender.get("sender_type") in ("bot", "app"),
            system=kind == "system",
            text=said.text,
            text_raw=raw,
            mentions=_mentioned(mentions),
            mentions_bot=None if private else named or (False if me else None),
            mentions_all=not private and said.everyone,
            self_known=bool(me),
            addressed=not private and named,
            attachments=said.attachments,
            reply_to=reference_of(message, chat_id),
            sent_at_ms=ms_of(message.get("create_time")),
            action="ignore" if own else "process",
            ignore_reason="self" if own else None,
        )
    ]


def _ids_of(named: dict[str, Json]) -> list[str]:
    """A person's ids, the one that Feishu uses everywhere first."""
    known = (named.get(key) for key in ("open_id", "user_id", "union_id", "app_id"))
    return [found for value in known if (found := id_of(value))]


def _mentioned(mentions: tuple[Mention, ...]) -> tuple[str, ...]:
    """Who is mentioned, by the first id of each; everyone has none."""
    return tuple(dict.fromkeys(mention.ids[0] for mention in mentions if mention.ids))
