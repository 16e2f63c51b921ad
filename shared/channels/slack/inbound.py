"""Slack's events, by HTTP or socket: verification, handshake and normalisation. Pure."""

import hashlib
import hmac
import json
import re
from dataclasses import dataclass

from shared.channels.port import HookRequest, HookResponse, Json
from shared.channels.reading import id_of, map_of, maps_of, required_id, required_map, text_of
from shared.channels.slack.content import author_name_of, body_of, files_of, ms_of, unescaped
from shared.channels.slack.limits import SLACKBOT, SPOKEN, WINDOW_MS
from shared.channels.slack.quotes import reference_of, thread_of
from shared.errors import Unauthorised
from shared.message import Action, Message
from shared.settings import AccountSettings

_MENTION = re.compile(r"<@([A-Z0-9]{1,40})(?:\|[^<>]{0,200})?>")
_EVERYONE = re.compile(r"<!(?:channel|here|everyone)(?:\|[^<>]{0,200})?>")
_STAMP = re.compile(r"\d{1,12}", re.ASCII)


def verify(request: HookRequest, account: AccountSettings, now_ms: int) -> None:
    """Check the v0 signature over the raw bytes and the time stamp's window of 300 s.

    Raises Unauthorised, also without `credentials.signing_secret` while the account is not `insecure`.
    """
    secret = account.credential("signing_secret")
    if not secret:
        if account.insecure:
            return
        raise Unauthorised("the account has no credentials.signing_secret")
    stamp = request.headers.get("x-slack-request-timestamp", "")
    if not _STAMP.fullmatch(stamp):
        raise Unauthorised("the time stamp is missing or no number")
    if abs(now_ms - int(stamp) * 1000) > WINDOW_MS:
        raise Unauthorised("the time stamp is too far from now")
    base = b"v0:" + stamp.encode() + b":" + request.body
    right = "v0=" + hmac.new(secret.encode(), base, hashlib.sha256).hexdigest()
    given = request.headers.get("x-slack-signature", "")
    if not hmac.compare_digest(given.encode("utf-8", "replace"), right.encode()):
        raise Unauthorised("the signature does not match")


def handshake(request: HookRequest, account: AccountSettings) -> HookResponse | None:
    """`url_verification` wants its challenge back."""
    del account
    if b"url_verification" not in request.body:
        return None
    try:
        body = map_of(json.loads(request.body))
    except (ValueError, RecursionError):
        return None
    challenge = text_of(body.get("challenge"))
    return HookResponse(200, challenge) if body.get("type") == "url_verification" and challenge else None


@dataclass(frozen=True, slots=True)
class _Callback:
    """One event_callback: the inner event and what the callback knows of us."""

    event: dict[str, Json]
    event_id: str | None
    app_id: str | None
    me: frozenset[str]


def normalise(event: Json, account: AccountSettings) -> list[Message]:
    """The message of a callback, bare or inside a socket's envelope. Raises Malformed.

    Keys: channel and ts, which a mention's two events share (C-6), then the event id; what only reports a change of a
    message has the latter alone.
    """
    outer = required_map(event, "the event")
    if "payload" in outer and "envelope_id" in outer:
        outer = required_map(outer["payload"], "payload")
    if outer.get("type") != "event_callback":
        return []
    inner = required_map(outer.get("event"), "event")
    if inner.get("type") not in ("message", "app_mention"):
        return []
    own = (id_of(item.get("user_id")) for item in maps_of(outer.get("authorizations")) if item.get("is_bot") is True)
    me = account.all_self_ids | {found for found in own if found}
    callback = _Callback(inner, id_of(outer.get("event_id")), id_of(outer.get("api_app_id")), me)
    match inner.get("subtype"):
        case "message_changed":
            return [_changed(callback, account)]
        case "message_deleted":
            return [_notice(callback, account, "delete-notice")]
        case subtype if subtype is None or (isinstance(subtype, str) and subtype in SPOKEN):
            return [_said(callback, inner, account, _keys(callback, inner), *_action_of(callback))]
        case _:
            return [_notice(callback, account, "notice")]


def _action_of(callback: _Callback) -> tuple[Action, str | None]:
    """A mention is sent again when its message was edited; answering it again would answer twice."""
    if _is_mine(callback.event, callback):
        return "ignore", "self"
    return ("edit", None) if map_of(callback.event.get("edited")) else ("process", None)


def _changed(callback: _Callback, account: AccountSettings) -> Message:
    """A person's edit, a deleted root that stays as a tombstone, or an unfurl, which has no new `edited` (C-9)."""
    message = required_map(callback.event.get("message"), "message")
    edited, before = map_of(message.get("edited")), map_of(callback.event.get("previous_message"))
    action: Action = "ignore"
    reason: str | None = None
    if message.get("subtype") == "tombstone":
        reason = "delete-notice"
    elif _is_mine(message, callback):
        reason = "self"
    elif not edited or map_of(before.get("edited")) == edited:
        reason = "unfurl"
    else:
        action = "edit"
    merged = {**message, "channel": callback.event.get("channel"), "channel_type": callback.event.get("channel_type")}
    fallback = f"{text_of(callback.event.get('channel'))}:{text_of(callback.event.get('ts'))}:changed"
    return _said(callback, merged, account, (callback.event_id or fallback,), action, reason)


def _notice(callback: _Callback, account: AccountSettings, reason: str) -> Message:
    event = callback.event
    ts = required_id(event.get("ts"), "ts")
    channel = required_id(event.get("channel"), "channel")
    return Message(
        channel="slack",
        account=account.id,
        message_id=ts,
        keys=(callback.event_id or f"{channel}:{ts}:notice",),
        chat_id=channel,
        chat_type="private" if _is_private(event, channel) else "group",
        system=True,
        sent_at_ms=ms_of(ts),
        action="ignore",
        ignore_reason=reason,
    )


def _said(
    callback: _Callback,
    event: dict[str, Json],
    account: AccountSettings,
    keys: tuple[str, ...],
    action: Action,
    reason: str | None,
) -> Message:
    ts = required_id(event.get("ts"), "ts")
    channel = required_id(event.get("channel"), "channel")
    private = _is_private(event, channel)
    raw = text_of(event.get("text"))
    mentions = tuple(dict.fromkeys(_MENTION.findall(raw)))
    mine = callback.event.get("type") == "app_mention" or not callback.me.isdisjoint(mentions)
    user, bot_id = id_of(event.get("user")), id_of(event.get("bot_id"))
    # Another app's message may have no user: its bot id stands for it. Our own needs none.
    sender = user or (None if reason == "self" else bot_id)
    return Message(
        channel="slack",
        account=account.id,
        message_id=ts,
        keys=keys,
        chat_id=channel,
        chat_type="private" if private else "group",
        thread_id=thread_of(event),
        sender_id=sender or "",
        sender_name=author_name_of(event),
        sender_is_bot=bot_id is not None or event.get("subtype") == "bot_message",
        system=user == SLACKBOT,
        text=_spoken(event, raw, callback.me),
        text_raw=raw,
        mentions=mentions,
        mentions_bot=None if private else mine or (False if callback.me else None),
        mentions_all=not private and _EVERYONE.search(raw) is not None,
        self_known=bool(callback.me),
        addressed=not private and mine,
        attachments=files_of(event),
        reply_to=reference_of(event, channel, ts),
        sent_at_ms=ms_of(ts),
        action=action,
        ignore_reason=reason,
    )


def _spoken(event: dict[str, Json], raw: str, me: frozenset[str]) -> str:
    """What was said, without the bot's own mention, entities decoded once, trimmed; bots may speak in blocks only."""
    if not raw.strip():
        return body_of(event).strip()
    return unescaped(_MENTION.sub(lambda found: "" if found.group(1) in me else found.group(0), raw)).strip()


def _keys(callback: _Callback, event: dict[str, Json]) -> tuple[str, ...]:
    stable = f"{required_id(event.get('channel'), 'channel')}:{required_id(event.get('ts'), 'ts')}"
    return (stable, callback.event_id) if callback.event_id else (stable,)


def _is_mine(message: dict[str, Json], callback: _Callback) -> bool:
    """By user, by bot id (a response_url post has no user), or by the app that both belong to."""
    ids = {id_of(message.get("user")), id_of(message.get("bot_id"))}
    apps = {id_of(message.get("app_id")), id_of(map_of(message.get("bot_profile")).get("app_id"))} - {None}
    return not callback.me.isdisjoint(ids) or callback.app_id in apps


def _is_private(event: dict[str, Json], channel: str) -> bool:
    """By channel_type, since ids of group conversations may start with any letter; app_mention has none."""
    kind = event.get("channel_type")
    if isinstance(kind, str) and kind:
        return kind in ("im", "app_home")
    return event.get("type") != "app_mention" and channel.startswith("D")
