"""Who a sender is to an account, whether the account takes the message, whether it is meant for the bot; and the two
intents that admission and engagement share. Pure.

Looks at the sender, the chat and the current content only: a quote widens nothing (behaviour.md, section 1, Access).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from shared.message import Message, lane_of
from shared.settings import AccountSettings
from shared.settings_accounts import Role
from shared.texts import TextName

TRUSTED: Final[frozenset[Role]] = frozenset({"owner", "member"})
"""Roles that may start a group's new session and stop another person's turn (behaviour.md, section 1, Commands)."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Send the fixed text `text_name` of `shared.texts` to the message's own chat; `values` fill its placeholders."""

    text_name: TextName
    values: Mapping[str, str | int] = field(default_factory=dict[str, str | int])


@dataclass(frozen=True, slots=True)
class Warn:
    """Write one warning line: a static event name and its fields, never text."""

    event: str
    fields: Mapping[str, str | int]


def role_of(message: Message, account: AccountSettings) -> Role:
    """The sender's role. `blocked` beats every other; an owner stays one even when the platform calls it a system
    message, because the gate tests the owner lane first."""
    sender = message.sender_id
    if sender and sender in account.blocked:
        return "blocked"
    if sender and sender in account.owners:
        return "owner"
    if message.system:
        return "system"
    if sender and sender in account.members:
        return "member"
    return "guest"


def admits(role: Role, message: Message, account: AccountSettings) -> bool:
    """True when the account takes this sender's messages in this chat. Owners pass every mode but `off`."""
    return admits_role(role, message.chat_type, message.chat_id, account)


def admits_sender(sender_id: str, chat_type: str, chat_id: str, account: AccountSettings) -> bool:
    """The same for a sender of whom only the id is known: before a reply to an accepted message is sent."""
    if sender_id and sender_id in account.blocked:
        return False
    role: Role = "owner" if sender_id in account.owners else "member" if sender_id in account.members else "guest"
    return admits_role(role, chat_type, chat_id, account)


def admits_role(role: Role, chat_type: str, chat_id: str, account: AccountSettings) -> bool:
    """True when the account takes messages of this role in this chat."""
    mode = account.direct if chat_type == "private" else account.groups
    if role == "blocked" or mode == "off":
        return False
    if role == "owner":
        return True
    match mode:
        case "open":
            return True
        case "members":
            return role == "member"
        case "owners":
            return False
        case "listed":
            return chat_id in account.listed_groups


def addressed(message: Message, account: AccountSettings) -> bool:
    """True when the message is meant for the bot: rule `rule.addressed` of behaviour.md, section 2, step 5.

    Reads what the platform marked, never "@digits" in the text. Where neither account nor event can tell the bot's own
    id, any mention counts.
    """
    own = account.all_self_ids
    if message.addressed or message.mentions_bot or not own.isdisjoint(message.mentions):
        return True
    if message.mentions_all and account.everyone_addresses:
        return True
    unknown = not own and (not message.self_known or message.mentions_bot is None)
    return unknown and bool(message.mentions)


def bot_run_of(message: Message) -> str:
    """The name under which a conversation's run of bots is counted, 24 hex digits.

    Chat and thread, whoever sends: with `session_scope = sender` two bots in one chat would otherwise never meet the
    human message that ends their run.
    """
    return lane_of(message.account, message.chat_id, message.thread_id, None)
