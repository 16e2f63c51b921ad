"""Telegram's updates, by webhook or long poll: verification and normalisation. Pure."""

import hmac

from shared.channels.port import HookRequest, Json
from shared.channels.reading import id_of, map_of, required_id, required_map, seconds_as_ms
from shared.channels.telegram.content import author_of, body_of, files_of
from shared.channels.telegram.limits import SERVICE_KEYS
from shared.channels.telegram.mentions import Self, mentions_of
from shared.channels.telegram.quotes import is_comment_on_post, is_implicit_root, reference_of
from shared.errors import Unauthorised
from shared.message import Action, Message
from shared.settings import AccountSettings

COMMENTS = {"thread": "comments"}
"""Route of a comment under a channel's post: its thread id names no topic, and sending with it would be refused."""

_KINDS = ("message", "edited_message", "channel_post", "edited_channel_post")


def verify(request: HookRequest, account: AccountSettings, now_ms: int) -> None:
    """Compare the secret that setWebhook was given. There is no time stamp, so `now_ms` plays no part.

    Raises Unauthorised: wrong or missing header, or no `credentials.secret` while the account is not `insecure`.
    """
    del now_ms
    secret = account.credential("secret")
    if not secret:
        if account.insecure:
            return
        raise Unauthorised("the account has no credentials.secret")
    given = request.headers.get("x-telegram-bot-api-secret-token", "")
    if not hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode()):
        raise Unauthorised("the secret token does not match")


def normalise(event: Json, account: AccountSettings) -> list[Message]:
    """The message of an update, if it has one. Raises Malformed.

    Keys: chat and message id, which every copy has, then the update id; an edit has the latter only.
    """
    update = required_map(event, "the update")
    for kind in _KINDS:
        if kind in update:
            raw = required_map(update[kind], kind)
            return [_message(raw, id_of(update.get("update_id")), kind.startswith("edited"), account)]
    return []


def _message(raw: dict[str, Json], update_id: str | None, edited: bool, account: AccountSettings) -> Message:
    me = Self.of(account)
    chat = required_map(raw.get("chat"), "chat")
    chat_id = required_id(chat.get("id"), "chat.id")
    message_id = required_id(raw.get("message_id"), "message_id")
    private = chat.get("type") == "private"
    topic = raw.get("is_topic_message") is True
    comment = not topic and is_comment_on_post(raw)
    thread_id = id_of(raw.get("message_thread_id")) if topic or comment else None
    author = author_of(raw)
    body = body_of(raw)
    files = files_of(raw)
    mentions = mentions_of(raw, body, me)
    self_known = bool(me.ids or me.username) and not mentions.unsure
    action, ignore_reason = _action(raw, bool(body.strip() or files), edited, me)
    stable, update_key = f"{chat_id}:{message_id}", f"update:{update_id}" if update_id else None
    return Message(
        channel="telegram",
        account=account.id,
        message_id=message_id,
        keys=_keys(stable, update_key, edited),
        chat_id=chat_id,
        chat_type="private" if private else "group",
        thread_id=thread_id,
        sender_id=author.id or "",
        sender_name=author.name,
        sender_is_bot=author.is_bot,
        system=ignore_reason == "notice" or raw.get("is_automatic_forward") is True,
        text=mentions.text,
        text_raw=body,
        mentions=mentions.others,
        mentions_bot=None if private else _mentions_bot(mentions.mine, self_known),
        self_known=self_known,
        addressed=not private and (mentions.mine or _replies_to_me(raw, me)),
        attachments=files,
        reply_to=reference_of(raw, chat_id, thread_id, me),
        sent_at_ms=seconds_as_ms(raw.get("edit_date") if edited else raw.get("date")),
        action=action,
        ignore_reason=ignore_reason,
        route=COMMENTS if comment else {},
    )


def _keys(stable: str, update_key: str | None, edited: bool) -> tuple[str, ...]:
    if edited:
        return (update_key or f"{stable}:edit",)
    return (stable, update_key) if update_key else (stable,)


def _action(raw: dict[str, Json], readable: bool, edited: bool, me: Self) -> tuple[Action, str | None]:
    if me.is_self(map_of(raw.get("from"))) or me.is_self(map_of(raw.get("via_bot"))):
        return "ignore", "self"
    if not readable and not SERVICE_KEYS.isdisjoint(raw):
        return "ignore", "notice"
    return ("edit", None) if edited else ("process", None)


def _mentions_bot(mine: bool, self_known: bool) -> bool | None:
    return mine or (False if self_known else None)


def _replies_to_me(raw: dict[str, Json], me: Self) -> bool:
    """On Telegram a reply to the bot addresses it (Q-38), but not what lies in a topic that it opened (C-2)."""
    reply = map_of(raw.get("reply_to_message"))
    return bool(reply) and me.is_self(map_of(reply.get("from"))) and not is_implicit_root(raw, reply)
