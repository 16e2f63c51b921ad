"""DingTalk's events, HTTP bodies and stream frames: verification and normalisation. Pure."""

import base64
import hashlib
import hmac
import re

from shared.channels.body import parse_json
from shared.channels.dingtalk.content import (
    MEDIA,
    files_of,
    kind_of,
    moment_of,
    opened,
    record_of,
    rich_text_of,
    words_of,
)
from shared.channels.dingtalk.limits import CALL_TOPIC, WINDOW_MS
from shared.channels.dingtalk.quotes import reference_of
from shared.channels.port import HookRequest, Json
from shared.channels.reading import id_of, map_of, maps_of, required_id, required_map, text_of, whole
from shared.errors import Unauthorised
from shared.message import Attachment, Message
from shared.settings import AccountSettings

_STAMP = re.compile(r"\d{1,15}", re.ASCII)


def verify(request: HookRequest, account: AccountSettings, now_ms: int) -> None:
    """Check `sign`, which covers the header `timestamp` (ms) alone, and that time's window of one hour.

    Raises Unauthorised, also without `credentials.app_secret` while the account is not `insecure`.
    """
    secret = account.credential("app_secret")
    if not secret:
        if account.insecure:
            return
        raise Unauthorised("the account has no credentials.app_secret")
    stamp = request.headers.get("timestamp", "")
    if not _STAMP.fullmatch(stamp):
        raise Unauthorised("the time stamp is missing or no number")
    if abs(now_ms - int(stamp)) > WINDOW_MS:
        raise Unauthorised("the time stamp is too far from now")
    given = request.headers.get("sign", "").encode("utf-8", "replace")
    if not hmac.compare_digest(given, signature(secret, stamp)):
        raise Unauthorised("the signature does not match")


def signature(secret: str, stamp: str) -> bytes:
    """The header `sign` for the time `stamp` (Unix ms, as text)."""
    base = f"{stamp}\n{secret}".encode()
    return base64.b64encode(hmac.new(secret.encode(), base, hashlib.sha256).digest())


def normalise(event: Json, account: AccountSettings) -> list[Message]:
    """The message of an HTTP body, or of a stream frame, whose `data` is the same as a JSON string. Raises Malformed.

    The key is msgId: a redelivered frame has another messageId (C-17).
    """
    outer = required_map(event, "the event")
    if "data" not in outer or "msgId" in outer:
        return [_said(outer, account)]
    if outer.get("type") == "SYSTEM" or map_of(outer.get("headers")).get("topic", CALL_TOPIC) != CALL_TOPIC:
        return []
    data = outer["data"]
    inner = parse_json(whole(data).encode()) if isinstance(data, str) else data
    return [_said(required_map(inner, "data"), account)]


def _said(data: dict[str, Json], account: AccountSettings) -> Message:
    message_id = required_id(data.get("msgId"), "msgId")
    chat_id = required_id(data.get("conversationId"), "conversationId")
    sender_id = required_id(data.get("senderId"), "senderId")
    private = id_of(data.get("conversationType")) == "1"
    own = id_of(data.get("chatbotUserId"))
    me = account.all_self_ids | ({own} if own else set[str]())
    ids = (id_of(each.get("dingtalkId")) for each in maps_of(data.get("atUsers")))
    mentions = tuple(dict.fromkeys(each for each in ids if each))
    mine = data.get("isInAtList") is True or not me.isdisjoint(mentions)
    kind = kind_of(data)
    raw, spoken, files = _content(kind, data)
    return Message(
        channel="dingtalk",
        account=account.id,
        message_id=message_id,
        keys=(f"msgId:{message_id}",),
        chat_id=chat_id,
        chat_type="private" if private else "group",
        sender_id=sender_id,
        sender_name=text_of(data.get("senderNick")) or None,
        text=spoken.strip(),
        text_raw=raw,
        mentions=mentions,
        mentions_bot=None if private else mine or (False if me else None),
        self_known=bool(me),
        addressed=not private and mine,
        attachments=files,
        reply_to=reference_of(data, chat_id, me),
        sent_at_ms=moment_of(data.get("createAt")),
        action="ignore" if sender_id in me else "process",
        ignore_reason="self" if sender_id in me else None,
        route=_route(data),
    )


def _content(kind: str, data: dict[str, Json]) -> tuple[str, str, tuple[Attachment, ...]]:
    """The text as written, the text as said, the files. A kind that is not known is an attachment nobody can read."""
    content = map_of(opened(data.get("content")))
    files = files_of(kind, content)
    match kind:
        case "audio":
            return "", text_of(content.get("recognition")), files
        case "richText":
            raw = rich_text_of(content)
        case "chatRecord":
            raw = record_of(content)
        case _ if kind in MEDIA:
            raw = ""
        case _:
            raw = words_of(map_of(opened(data.get("text"))))
            if kind != "text" and not raw.strip():
                return "", "", (Attachment(kind="other"),)
    return raw, raw, files


def _route(data: dict[str, Json]) -> dict[str, str]:
    """`webhook` takes replies until `until` (Unix ms); `user` is the asker's staff id, which colleagues alone have."""
    until = moment_of(data.get("sessionWebhookExpiredTime"))
    found = {
        "webhook": text_of(data.get("sessionWebhook")) if until is not None else "",
        "until": str(until or ""),
        "user": text_of(data.get("senderStaffId")),
    }
    return {key: value for key, value in found.items() if value}
