"""The Cloud API's webhook bodies, read message by message. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from shared.channels.port import Json
from shared.channels.reading import id_of, map_of, maps_of, required_id, required_map, seconds_as_ms, text_of
from shared.channels.whatsapp.wamid import index_keys
from shared.errors import Malformed
from shared.message import Action, Attachment, AttachmentKind, Lookup, Message, ReplyReference
from shared.settings import AccountSettings

_MEDIA: dict[str, AttachmentKind] = {
    "image": "image",
    "sticker": "image",
    "video": "video",
    "audio": "audio",
    "document": "file",
}


@dataclass(frozen=True, slots=True)
class _Change:
    """One change's value: who we are in it, and whom it knows."""

    account: AccountSettings
    me: frozenset[str]
    contacts: tuple[dict[str, Json], ...]
    route: dict[str, str]


def readers(outer: dict[str, Json], account: AccountSettings) -> list[Callable[[], Message | None]]:
    """One call for every message of every change of every entry; each may raise Malformed.

    A number other than `credentials.phone_number_id` is another account's: Meta posts all numbers of an app to one
    address.
    """
    found: list[Callable[[], Message | None]] = []
    for entry in maps_of(outer.get("entry")):
        for item in maps_of(entry.get("changes")):
            value = map_of(item.get("value"))
            metadata = map_of(value.get("metadata"))
            number, shown = id_of(metadata.get("phone_number_id")), id_of(metadata.get("display_phone_number"))
            ours = account.credential("phone_number_id")
            if ours and number and ours != number:
                continue
            me = account.all_self_ids | {each for each in (number, _digits(shown)) if each}
            change = _Change(account, me, tuple(maps_of(value.get("contacts"))), {"number": number} if number else {})
            found += [partial(_message, change, raw) for raw in maps_of(value.get("messages"))]
            found += [partial(_echo, change, raw) for raw in maps_of(value.get("message_echoes"))]
    return found


def _digits(shown: str | None) -> str | None:
    """`+1 202-555-0190` as `12025550190`, the way a quote names the author."""
    return "".join(each for each in shown if each.isascii() and each.isdigit()) or None if shown else None


def _message(change: _Change, raw: dict[str, Json]) -> Message:
    kind = text_of(raw.get("type"))
    own_id = required_id(raw.get("id"), "id")
    sender = id_of(raw.get("from")) or id_of(raw.get("from_user_id")) or _only_contact(change)
    if sender is None:
        raise Malformed("from is missing")
    if sender in change.me:
        return _built(change, raw, own_id, sender, _peer(raw, sender), "ignore", "self")
    chat = id_of(raw.get("group_id")) or sender
    match kind:
        case "edit":
            edit = required_map(raw.get("edit"), "edit")
            original = required_id(edit.get("original_message_id"), "original_message_id")
            # The new content's context names a dummy ("M0"): an edit quotes nothing.
            merged = {**map_of(edit.get("message")), "context": None}
            kept = {key: raw.get(key) for key in ("timestamp", "group_id")}
            return _built(change, {**merged, **kept}, own_id, sender, chat, "edit", None, original)
        case "revoke":
            return _built(change, raw, own_id, sender, chat, "ignore", "delete-notice")
        case "reaction":
            return _built(change, raw, own_id, sender, chat, "ignore", "reaction")
        case "system":
            return _built(change, raw, own_id, sender, chat, "ignore", "notice")
        case _:
            return _built(change, raw, own_id, sender, chat, "process", None)


def _echo(change: _Change, raw: dict[str, Json]) -> Message:
    """What staff typed in the business app (Coexistence): never a question."""
    own_id = required_id(raw.get("id"), "id")
    sender = id_of(raw.get("from")) or ""
    return _built(change, raw, own_id, sender, _peer(raw, None), "ignore", "self")


def _peer(raw: dict[str, Json], fallback: str | None) -> str:
    return required_id(raw.get("group_id") or raw.get("to") or raw.get("to_user_id") or fallback, "to")


def _built(
    change: _Change,
    raw: dict[str, Json],
    own_id: str,
    sender: str,
    chat: str,
    action: Action,
    reason: str | None,
    message_id: str | None = None,
) -> Message:
    private = id_of(raw.get("group_id")) is None
    kind = text_of(raw.get("type"))
    body, files = _body(raw, kind), _files(raw, kind)
    if action == "process" and not body.strip() and not files:
        action, reason = "ignore", "unsupported"
    reply_to = _reference(raw, kind, chat, change) if action == "process" else None
    to_me = reply_to is not None and reply_to.author_id in change.me
    return Message(
        channel="whatsapp",
        account=change.account.id,
        message_id=message_id or own_id,
        keys=(own_id,),
        chat_id=chat,
        chat_type="private" if private else "group",
        sender_id=sender,
        sender_name=_name(change, sender),
        system=reason == "notice",
        text=body.strip(),
        text_raw=body,
        self_known=bool(change.me),
        addressed=not private and to_me,
        attachments=files,
        reply_to=reply_to,
        sent_at_ms=_ms(raw.get("timestamp")),
        action=action,
        ignore_reason=reason,
        route=change.route,
    )


def _ms(value: object) -> int | None:
    """The time, which comes as digits in a string."""
    if isinstance(value, str):
        return seconds_as_ms(int(value)) if value.isascii() and value.isdigit() and len(value) <= 12 else None
    return seconds_as_ms(value)


def _only_contact(change: _Change) -> str | None:
    """A user with a name instead of a number may be told in `contacts` alone."""
    if len(change.contacts) != 1:
        return None
    return id_of(change.contacts[0].get("wa_id")) or id_of(change.contacts[0].get("user_id"))


def _name(change: _Change, sender: str) -> str | None:
    """Contacts belong to messages by their ids, not by their place."""
    for contact in change.contacts:
        if sender in (id_of(contact.get("wa_id")), id_of(contact.get("user_id"))):
            return text_of(map_of(contact.get("profile")).get("name")) or None
    return None


def _body(raw: dict[str, Json], kind: str) -> str:
    match kind:
        case "text":
            return text_of(map_of(raw.get("text")).get("body"))
        case "button":
            return text_of(map_of(raw.get("button")).get("text"))
        case "interactive":
            inner = map_of(raw.get("interactive"))
            replies = (map_of(inner.get(key)) for key in ("button_reply", "list_reply"))
            return next((title for each in replies if (title := text_of(each.get("title")))), "")
        case _ if kind in _MEDIA:
            return text_of(map_of(raw.get(kind)).get("caption"))
        case _:
            return ""


def _files(raw: dict[str, Json], kind: str) -> tuple[Attachment, ...]:
    media = map_of(raw.get(kind)) if kind in _MEDIA else {}
    if not media:
        return ()
    media_id = id_of(media.get("id"))
    file = Attachment(
        kind=_MEDIA[kind],
        name=text_of(media.get("filename")) or None,
        media_type=text_of(media.get("mime_type")) or None,
        ref={"media_id": media_id} if media_id else {},
    )
    return (file,)


def _reference(raw: dict[str, Json], kind: str, chat: str, change: _Change) -> ReplyReference | None:
    """Only `context.id` makes a quote, and a pressed button's points at its menu. A body never comes with it."""
    context = map_of(raw.get("context"))
    quoted = id_of(context.get("id"))
    if quoted is None or kind in ("button", "interactive"):
        return None
    author = id_of(context.get("from"))
    mine = author in change.me
    return ReplyReference(
        message_id=quoted,
        author_id=author,
        author_name=(change.account.self_name or None) if mine else None,
        lookup=Lookup(via="index", chat_id=chat, message_id=quoted, keys=index_keys(quoted)),
    )
