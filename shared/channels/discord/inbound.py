"""Discord's gateway events: normalisation. Pure. A bridge posts and signs them (`shared.channels.bridge`)."""

import re

from shared.channels.discord.content import embeds_of, files_of, is_snowflake, ms_of, name_of
from shared.channels.discord.limits import DIRECT, SPOKEN, THREADS
from shared.channels.discord.quotes import reference_of
from shared.channels.port import Json
from shared.channels.reading import id_of, int_of, map_of, maps_of, required_id, required_map, text_of
from shared.errors import Malformed
from shared.message import Action, Message
from shared.settings import AccountSettings

_MENTION = re.compile(r"<@[!&]?(\d{1,20})>", re.ASCII)


def normalise(event: Json, account: AccountSettings) -> list[Message]:
    """The message of a dispatch {op: 0, t, s, d}; any other event has none. Raises Malformed.

    Keys: the message's id, unique across Discord; what only reports a change of it has a key of its own.
    """
    frame = required_map(event, "the event")
    if int_of(frame.get("op", 0)) != 0:
        return []
    kind = frame.get("t")
    if kind not in ("MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE"):
        return []
    raw = required_map(frame.get("d"), "d")
    message_id = _snowflake(raw.get("id"), "d.id")
    if kind == "MESSAGE_DELETE":
        return [_notice(raw, account, f"{message_id}:delete", "delete-notice")]
    if kind == "MESSAGE_CREATE":
        return [_said(raw, account, message_id, edited=False)]
    # The preview of a link comes as an update too, partial or with no time of an edit: nobody edited anything.
    edited = text_of(raw.get("edited_timestamp"))
    if not edited or not map_of(raw.get("author")):
        return [_notice(raw, account, f"{message_id}:update", "unfurl-update")]
    return [_said(raw, account, f"{message_id}:edit:{edited}", edited=True)]


def _snowflake(value: object, what: str) -> str:
    found = required_id(value, what)
    if not is_snowflake(found):
        raise Malformed(f"{what} is no id")
    return found


def _notice(raw: dict[str, Json], account: AccountSettings, key: str, reason: str) -> Message:
    chat_id = _snowflake(raw.get("channel_id"), "d.channel_id")
    return Message(
        channel="discord",
        account=account.id,
        message_id=_snowflake(raw.get("id"), "d.id"),
        keys=(key,),
        chat_id=chat_id,
        chat_type="private" if _is_private(raw) else "group",
        thread_id=_thread_of(raw, chat_id),
        system=True,
        self_known=bool(account.all_self_ids),
        action="ignore",
        ignore_reason=reason,
    )


def _said(raw: dict[str, Json], account: AccountSettings, key: str, *, edited: bool) -> Message:
    me = account.all_self_ids
    message_id = _snowflake(raw.get("id"), "d.id")
    chat_id = _snowflake(raw.get("channel_id"), "d.channel_id")
    author = map_of(raw.get("author"))
    sender_id = _snowflake(author.get("id"), "d.author.id")
    private = _is_private(raw)
    content = text_of(raw.get("content"))
    mentions = _mentions_of(raw)
    mine = not me.isdisjoint(mentions)
    system = (int_of(raw.get("type")) or 0) not in SPOKEN
    action: Action = "edit" if edited else "process"
    reason: str | None = None
    if sender_id in me or id_of(raw.get("application_id")) in me:
        action, reason = "ignore", "self"
    elif system:
        action, reason = "ignore", "system"
    spoken = _MENTION.sub(lambda found: "" if found.group(1) in me else found.group(0), content)
    return Message(
        channel="discord",
        account=account.id,
        message_id=message_id,
        keys=(key,),
        chat_id=chat_id,
        chat_type="private" if private else "group",
        thread_id=_thread_of(raw, chat_id),
        sender_id=sender_id,
        sender_name=text_of(map_of(raw.get("member")).get("nick")) or name_of(author),
        sender_is_bot=author.get("bot") is True or id_of(raw.get("webhook_id")) is not None,
        system=system,
        text=(spoken if content.strip() else embeds_of(raw)).strip(),
        text_raw=content,
        mentions=mentions,
        mentions_bot=None if private else mine or (False if me else None),
        mentions_all=not private and raw.get("mention_everyone") is True,
        self_known=bool(me),
        addressed=not private and mine,
        attachments=files_of(raw),
        reply_to=None if system else reference_of(raw, chat_id, message_id),
        sent_at_ms=ms_of(raw.get("edited_timestamp") if edited else raw.get("timestamp")),
        action=action,
        ignore_reason=reason,
    )


def _mentions_of(raw: dict[str, Json]) -> tuple[str, ...]:
    """Users and roles that Discord itself names; a reply with ping names the quoted author (Q-37)."""
    roles = raw.get("mention_roles")
    named = [id_of(user.get("id")) for user in maps_of(raw.get("mentions"))]
    named += [id_of(role) for role in (roles[:1000] if isinstance(roles, list) else [])]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return tuple(dict.fromkeys(each for each in named if each))


def _is_private(raw: dict[str, Json]) -> bool:
    """No server, and not a conversation of several people (channel type 3)."""
    return id_of(raw.get("guild_id")) is None and int_of(raw.get("channel_type")) in (None, DIRECT)


def _thread_of(raw: dict[str, Json], chat_id: str) -> str | None:
    """A thread is a channel of its own; its parent is not in the event."""
    return chat_id if int_of(raw.get("channel_type")) in THREADS else None
