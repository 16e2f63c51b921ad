"""Weixin's messages as getupdates gives them: verification of the bridge that posts them, and normalisation. Pure."""

import hashlib
from typing import cast

from shared.channels.port import Json
from shared.channels.reading import int_of, maps_of, required_id, required_map, text_of
from shared.channels.weixin.content import body_of, files_of, items_of, moment_of, time_of, uint64_of
from shared.channels.weixin.limits import BOT_MESSAGE, FINGERPRINT_MS
from shared.channels.weixin.quotes import reference_of
from shared.errors import Malformed
from shared.message import Action, Attachment, Message
from shared.settings import AccountSettings

_LONE = frozenset({"message_id", "from_user_id", "item_list"})
"""What tells a message from an answer that holds some."""


def normalise(event: Json, account: AccountSettings) -> list[Message]:
    """The messages of a getupdates answer, or the one message that a bridge posted by itself. Raises Malformed.

    An answer that only says that nothing came, or that the login ended, has none. One message that cannot be read does
    not cost the others: the whole answer is Malformed when none can.
    """
    answer = required_map(event, "the event")
    if "msgs" not in answer:
        return [] if _LONE.isdisjoint(answer) else [_message(answer, account)]
    read: list[Message] = []
    failed: Malformed | None = None
    for raw in maps_of(answer["msgs"]):
        try:
            read.append(_message(raw, account))
        except Malformed as error:
            failed = error
    if failed is not None and not read:
        raise failed
    return read


def _message(raw: dict[str, Json], account: AccountSettings) -> Message:
    sender = required_id(raw.get("from_user_id"), "from_user_id")
    receiver = text_of(raw.get("to_user_id"))
    by_bot = int_of(raw.get("message_type")) == BOT_MESSAGE
    mine = by_bot or sender in account.all_self_ids
    group = text_of(raw.get("group_id"))
    chat_id = group or (receiver or sender if mine else sender)
    items = items_of(raw)
    body, files = body_of(items), files_of(items)
    named = uint64_of(raw.get("message_id"))
    written_at_ms = moment_of(raw.get("create_time_ms"))
    sent_at_ms = time_of(named, written_at_ms) or written_at_ms
    # The bot is the other side of everything that it gets, so the event itself tells who it is.
    me = account.all_self_ids | {each for each in (sender if mine else receiver,) if each}
    mentions = tuple(dict.fromkeys(name for item in items for name in _mentioned(item)))
    addressed = bool(group) and not me.isdisjoint(mentions)
    lasting, passing = _names(raw, named), _fingerprints(sender, body, files)
    action, ignore_reason = _action(raw, mine=mine)
    token = text_of(raw.get("context_token"))
    return Message(
        channel="weixin",
        account=account.id,
        message_id=named or lasting[0].partition(":")[2],
        keys=(*lasting, *passing),
        windows=dict.fromkeys(passing, FINGERPRINT_MS),
        chat_id=chat_id,
        chat_type="group" if group else "private",
        sender_id=sender,
        sender_is_bot=by_bot,
        text=body.strip(),
        text_raw=body,
        mentions=mentions,
        mentions_bot=(addressed or (False if me else None)) if group else None,
        self_known=bool(me),
        addressed=addressed,
        attachments=files,
        reply_to=reference_of(items, chat_id, sent_at_ms),
        sent_at_ms=sent_at_ms,
        action=action,
        ignore_reason=ignore_reason,
        route={"context_token": token} if token else {},
    )


def _action(raw: dict[str, Json], *, mine: bool) -> tuple[Action, str | None]:
    if mine:
        return "ignore", "self"
    return ("ignore", "delete-notice") if moment_of(raw.get("delete_time_ms")) else ("process", None)


def _names(raw: dict[str, Json], named: str | None) -> tuple[str, ...]:
    """The keys that name a message for good: its id, which may be missing, and the client's; without both its place in
    the queue, as for the official client. Raises Malformed when nothing names it."""
    client = text_of(raw.get("client_id"))
    if found := tuple(f"{kind}:{value}" for kind, value in (("id", named), ("client", client)) if value):
        return found
    seq = int_of(raw.get("seq"))
    if seq is None:
        raise Malformed("message_id is missing")
    return (f"seq:{seq}",)


def _fingerprints(sender: str, body: str, files: tuple[Attachment, ...]) -> tuple[str, ...]:
    """What a copy under other ids still shares (C-13): who said which words; a voice that says the same is another
    message. Without words there is none. The digest guards nothing; it is spelled as in the golden events."""
    said = body.strip()
    if not said:
        return ()
    what = "\0".join((*(file.kind for file in files), said))
    return (f"fp30s:{sender}:{hashlib.md5(what.encode(), usedforsecurity=False).hexdigest()}",)


def _mentioned(item: dict[str, Json]) -> list[str]:
    names = item.get("at_bot_username_list")
    listed = cast("list[object]", names)[:1000] if isinstance(names, list) else []
    return [name for each in listed if (name := text_of(each))]
