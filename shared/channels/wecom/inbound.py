"""WeCom's callbacks, by HTTP (encrypted) or as a socket's frames: verification, URL check, normalisation. Pure."""

import hmac

from shared.channels.body import parse_json
from shared.channels.port import HookRequest, HookResponse, Json
from shared.channels.reading import map_of, required_id, required_map, seconds_as_ms, text_of
from shared.channels.wecom.content import MEDIA, content_of, mention_in, reference_of
from shared.channels.wecom.crypto import opened, signature
from shared.channels.wecom.limits import WINDOW_MS
from shared.errors import Malformed, Unauthorised
from shared.message import Attachment, Message
from shared.settings import AccountSettings


def verify(request: HookRequest, account: AccountSettings, now_ms: int) -> None:
    """Check msg_signature over token, timestamp, nonce and what is encrypted, and the time stamp's window of 300 s.

    The hex digits must be lower-case, as WeCom writes them. Raises Unauthorised, also without `credentials.token`
    while the account is not `insecure`.
    """
    token = account.credential("token")
    if not token:
        if account.insecure:
            return
        raise Unauthorised("the account has no credentials.token")
    stamp = request.query.get("timestamp", "")
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12):
        raise Unauthorised("the time stamp is missing or no number")
    if abs(now_ms - int(stamp) * 1000) > WINDOW_MS:
        raise Unauthorised("the time stamp is too far from now")
    right = signature(token, stamp, request.query.get("nonce", ""), _encrypted(request))
    given = request.query.get("msg_signature", "")
    if not hmac.compare_digest(given.encode("utf-8", "replace"), right):
        raise Unauthorised("the signature does not match")


def _encrypted(request: HookRequest) -> str:
    """What was signed: the echo of a URL check, or the body's `encrypt`. Raises Unauthorised when there is none."""
    if request.method == "GET":
        found = request.query.get("echostr", "")
    else:
        try:
            found = text_of(map_of(parse_json(request.body)).get("encrypt"))
        except Malformed:
            found = ""
    if not found:
        raise Unauthorised("nothing is signed")
    return found


def handshake(request: HookRequest, account: AccountSettings) -> HookResponse | None:
    """A URL check (GET with echostr) wants the decrypted text, plainly. Raises Malformed when it cannot be opened."""
    echo = request.query.get("echostr", "")
    if request.method != "GET" or not echo:
        return None
    try:
        return HookResponse(200, opened(echo, account).decode())
    except UnicodeDecodeError:
        raise Malformed("the echo is no text") from None


def normalise(event: Json, account: AccountSettings) -> list[Message]:
    """The message of a callback: encrypted, as a socket's frame, or bare. Raises Malformed.

    Its key is the msgid, which retries share. Events (a card's button, a chat entered) and refreshes of a stream are
    no messages.
    """
    outer = required_map(event, "the event")
    if "encrypt" in outer:
        outer = required_map(parse_json(opened(text_of(outer["encrypt"]), account)), "the decrypted event")
    if "cmd" in outer:
        if outer["cmd"] != "aibot_msg_callback":
            return []
        outer = required_map(outer.get("body"), "body")
    if outer.get("msgtype") in ("event", "stream"):
        return []
    return [_message(outer, account)]


def _message(body: dict[str, Json], account: AccountSettings) -> Message:
    msgid = required_id(body.get("msgid"), "msgid")
    sender = required_id(map_of(body.get("from")).get("userid"), "from.userid")
    group = body.get("chattype") == "group" or (body.get("chattype") != "single" and bool(body.get("chatid")))
    content = content_of(body)
    raw = "\n".join(content.texts)
    mention = mention_in(raw, account.self_name) if group else None
    own = sender in account.all_self_ids or sender == body.get("aibotid")
    url = text_of(body.get("response_url")).strip()
    return Message(
        channel="wecom",
        account=account.id,
        message_id=msgid,
        keys=(f"msgid:{msgid}",),
        chat_id=required_id(body.get("chatid"), "chatid") if group else sender,
        chat_type="group" if group else "private",
        sender_id=sender,
        sender_is_bot=own,
        text=mention.text if mention else raw.strip(),
        text_raw=raw,
        mentions_bot=mention.mine if mention else None,
        self_known=bool(account.all_self_ids or text_of(body.get("aibotid"))),
        addressed=mention is not None and mention.addressed,
        attachments=content.files or _unread(body, raw),
        reply_to=reference_of(body),
        sent_at_ms=seconds_as_ms(body.get("create_time")),
        action="ignore" if own else "process",
        ignore_reason="self" if own else None,
        route={"response_url": url} if url else {},
    )


def _unread(body: dict[str, Json], text: str) -> tuple[Attachment, ...]:
    """What stands for a message that holds nothing that is known here: a new type, or media without an object."""
    kind = text_of(body.get("msgtype"))
    if text or kind in ("text", "mixed", ""):
        return ()
    return (Attachment(kind=MEDIA.get(kind, "other")),)
