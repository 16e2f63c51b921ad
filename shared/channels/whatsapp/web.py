"""Messages of a linked device, as Baileys hands them to `messages.upsert`. Pure.

A person or a chat may be named by number (`…@s.whatsapp.net`) or by LID (`…@lid`); where an event tells both, the LID
counts, so that two copies of a message share their key and a person has one session.
"""

import re
from collections.abc import Callable
from functools import partial

from shared.channels.port import Json
from shared.channels.reading import id_of, int_of, map_of, maps_of, required_id, required_map, seconds_as_ms
from shared.channels.whatsapp.content import Content, content_of, jid_of, long_of, unwrapped
from shared.channels.whatsapp.limits import OWN_ID_PREFIX
from shared.errors import Malformed
from shared.message import Action, Lookup, Message, QuotedAttachment, ReplyReference
from shared.settings import AccountSettings

_EDIT = (14, "MESSAGE_EDIT")
_REVOKE = (0, "REVOKE", None)  # 0 is the default, which JSON of protocol buffers may leave out


def readers(outer: dict[str, Json], account: AccountSettings) -> list[Callable[[], Message | None]]:
    """One call for every message; each may raise Malformed."""
    return [partial(_message, raw, account) for raw in maps_of(outer.get("messages"))]


def _message(raw: dict[str, Json], account: AccountSettings) -> Message | None:
    """None for what is no conversation (status, newsletter) and for what has no content: one that could not be
    decrypted comes again under the same id, which must not be taken yet."""
    key = required_map(raw.get("key"), "key")
    chat = _canonical(key, "remoteJid")
    if chat is None:
        raise Malformed("remoteJid is missing")
    own_id = required_id(key.get("id"), "key.id")
    message = unwrapped(map_of(raw.get("message")))
    spoken = message.keys() - {"messageContextInfo", "senderKeyDistributionMessage"}
    if not spoken or chat.endswith(("@broadcast", "@newsletter")):
        return None
    me = _own(account)
    private = not chat.endswith("@g.us")
    sender = _sender(key, chat, private, me)
    action, reason = _action(key, chat, own_id, message, me)
    protocol = map_of(message.get("protocolMessage"))
    message_id = own_id
    if protocol:
        if protocol.get("type") in _EDIT:
            message_id = required_id(map_of(protocol.get("key")).get("id"), "protocolMessage.key.id")
            message = unwrapped(map_of(protocol.get("editedMessage")))
        elif reason is None:
            return None  # settings of the chat, keys of the application: nobody said anything
    content = content_of(message)
    if action == "process" and not content.text.strip() and not content.files:
        action, reason = "ignore", "unsupported"
    return _built(
        Message(
            channel="whatsapp",
            account=account.id,
            message_id=message_id,
            keys=(f"{chat}:{own_id}",),
            chat_id=chat,
            chat_type="private" if private else "group",
            sender_id=sender,
            sender_name=id_of(raw.get("pushName")),
            self_known=bool(me),
            attachments=content.files,
            sent_at_ms=seconds_as_ms(long_of(raw.get("messageTimestamp"))),
            action=action,
            ignore_reason=reason,
        ),
        content,
        me,
        account,
    )


def _built(bare: Message, content: Content, me: tuple[str, ...], account: AccountSettings) -> Message:
    """`bare` with what depends on its context: mentions, quote, and whether it is meant for the bot.

    A mention is proven by `mentionedJid`, never by digits in the text (C-12); a reply to the bot addresses it (Q-38).
    """
    group = bare.chat_type == "group"
    listed = content.context.get("mentionedJid")
    # Widened by hand: a list of strings is no list of objects.
    named: list[Json] = listed[:1000] if isinstance(listed, list) else []  # pyright: ignore[reportUnknownVariableType]
    mentions = tuple(dict.fromkeys(jid for each in named if (jid := jid_of(each))))
    mine = not set(me).isdisjoint(mentions)
    reply_to = _reference(content.context, bare.chat_id, me, account)
    text = content.text
    for jid in mentions:
        if jid in me:
            text = re.sub(rf"@{re.escape(jid.split('@')[0])}(?!\d)", "", text)
    replied = reply_to is not None and reply_to.author_id in me
    return bare.model_copy(
        update={
            "text": text.strip(),
            "text_raw": content.text,
            "mentions": mentions,
            "mentions_bot": (mine or (False if me else None)) if group else None,
            "mentions_all": group and bool(int_of(content.context.get("nonJidMentions"))),
            "addressed": group and (mine or replied),
            "reply_to": reply_to,
        }
    )


def _own(account: AccountSettings) -> tuple[str, ...]:
    """The bot's ids without their device, the number's first."""
    found = {jid for each in account.all_self_ids if (jid := jid_of(each))}
    return tuple(sorted(found, key=lambda jid: (not jid.endswith("@s.whatsapp.net"), jid)))


def _canonical(key: dict[str, Json], name: str) -> str | None:
    """The id under `name`, or the other one of the same person when that is the LID."""
    first, other = jid_of(key.get(name)), jid_of(key.get(f"{name}Alt"))
    return other if first and other and other.endswith("@lid") else first


def _sender(key: dict[str, Json], chat: str, private: bool, me: tuple[str, ...]) -> str:
    if key.get("fromMe") is True:
        return me[0] if me else _canonical(key, "participant") or ""
    sender = chat if private else _canonical(key, "participant")
    if sender is None:
        raise Malformed("participant is missing")
    return sender


def _action(
    key: dict[str, Json], chat: str, own_id: str, message: dict[str, Json], me: tuple[str, ...]
) -> tuple[Action, str | None]:
    """What the owner writes into the chat with himself is a question, unless a linked client wrote it: those are the
    bot's own answers, and taking them would never end."""
    if key.get("fromMe") is True and (chat not in me or own_id.startswith(OWN_ID_PREFIX)):
        return "ignore", "self"
    if "reactionMessage" in message or "encReactionMessage" in message:
        return "ignore", "reaction"
    protocol = map_of(message.get("protocolMessage"))
    if protocol:
        kind = protocol.get("type")
        if kind in _EDIT:
            return "edit", None
        if kind in _REVOKE:
            return "ignore", "delete-notice"
    return "process", None


def _reference(
    context: dict[str, Json], chat: str, me: tuple[str, ...], account: AccountSettings
) -> ReplyReference | None:
    """Only `stanzaId` makes a quote: a context also comes with timers, forwards and mentions.

    A quote from another chat (a status, a private answer to a group's message) is never looked for in this one.
    """
    quoted_id = id_of(context.get("stanzaId"))
    if quoted_id is None:
        return None
    author = jid_of(context.get("participant"))
    elsewhere = jid_of(context.get("remoteJid"))
    if elsewhere is not None and elsewhere in (chat, author if not chat.endswith("@g.us") else chat):
        elsewhere = None
    known = ReplyReference(
        message_id=quoted_id,
        author_id=author,
        author_name=(account.self_name or None) if author in me else None,
        reference_kind="status" if elsewhere == "status@broadcast" else None,
        source_chat_id=elsewhere,
    )
    quoted = unwrapped(map_of(context.get("quotedMessage")))
    content = content_of(quoted)
    readable = bool(content.text.strip())
    if readable or content.files:
        return known.model_copy(
            update={
                "content": content.text if readable else None,
                "attachments": tuple(QuotedAttachment(kind=file.kind, name=file.name) for file in content.files),
                "explicit_text": readable,
                "source": "payload",
            }
        )
    if quoted.keys() - {"messageContextInfo"}:
        return known.model_copy(update={"unavailable_reason": "unsupported"})
    if elsewhere is not None:
        return known.model_copy(update={"unavailable_reason": "not-delivered"})
    wanted = Lookup(via="index", chat_id=chat, message_id=quoted_id, keys=(quoted_id,))
    return known.model_copy(update={"lookup": wanted})
