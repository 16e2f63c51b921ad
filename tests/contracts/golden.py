"""Golden events: what a fixture's `expect` says, compared with what normalising gives."""

import json
from pathlib import Path
from typing import Any

from shared.message import Message, ReplyReference
from shared.settings import AccountSettings

FIXTURES = Path(__file__).parents[1] / "fixtures"

# Which of a fixture's `bot` keys become which of the account's (scenarios.md, "Fixture `bot` keys").
SELF_ID = ("self_id", "bot_user_id", "raw_user_id", "phone_number_id")
SELF_IDS = (
    "raw_user_lid", "lid_jid", "pn_jid", "display_phone_number", "bot_id", "self_group_openid", "managed_role_id",
    "application_id",
)  # fmt: skip
SELF_NAME = ("self_name", "username", "name")

# Keys of `expect` that say what the pipeline does with a second copy, or what no stage needs to know.
NOT_NORMALISED = frozenset(
    {
        "redelivery_action", "previous_text_raw", "deleted_message_id", "author_is_bot", "selected_quote_is_manual",
        "lookup_via", "embeds_text", "forwarded_text", "edit_event_id", "is_forwarded", "alt_sender_id",
        "is_self_chat",
    }
)  # fmt: skip


def cases(*channels: str) -> list[Path]:
    """All fixtures of the channels, in order."""
    return sorted(path for channel in channels for path in (FIXTURES / channel).glob("*.json"))


def case_id(path: Path) -> str:
    """A test's id: the channel and the file's name."""
    return f"{path.parent.name}-{path.stem}"


def load(path: Path) -> dict[str, Any]:
    """The fixture."""
    return json.loads(path.read_text(encoding="utf-8"))


def account_of(fixture: dict[str, Any], **more: Any) -> AccountSettings:
    """The account that knows of its bot what the fixture tells."""
    bot = fixture["bot"]
    first = next((str(bot[key]) for key in SELF_ID if bot.get(key)), "")
    return AccountSettings.model_validate(
        {
            "id": "acct",
            "channel": fixture["channel"],
            "self_id": first,
            "self_ids": [str(bot[key]) for key in SELF_IDS if bot.get(key)],
            "self_name": next((bot[key] for key in SELF_NAME if bot.get(key)), ""),
            **more,
        }
    )


def differences(message: Message, expect: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What differs, by key: (expected, came). Every key of `expect` is either compared or named above."""
    seen = {
        "message_id": message.message_id,
        "chat_id": message.chat_id,
        "chat_type": message.chat_type,
        "sender_id": message.sender_id or None,
        "text": message.text or None,
        "text_raw": message.text_raw,
        "mentions_bot": message.mentions_bot,
        "mentions_everyone": message.mentions_all,
        "mentions_all": message.mentions_all,
        "sender_is_bot": message.sender_is_bot,
        "session_thread": message.thread_id,
        "thread_id": message.thread_id,
        "attachments": [{"kind": each.kind, "name": each.name} for each in message.attachments],
        "action": message.action,
        "ignore_reason": message.ignore_reason,
        "dedupe_keys": sorted(message.keys),
    }
    found: dict[str, tuple[Any, Any]] = {}
    for key, wanted in expect.items():
        if key in NOT_NORMALISED:
            continue
        if key == "reply_to":
            found |= reference_differences(message.reply_to, wanted)
            continue
        right = sorted(wanted) if key == "dedupe_keys" else wanted
        right = right or None if key in ("sender_id", "text") else right
        if seen[key] != right:
            found[key] = (right, seen[key])
    return found


def reference_differences(
    reference: ReplyReference | None, expect: dict[str, Any] | None
) -> dict[str, tuple[Any, Any]]:
    """What differs in the quote, by key."""
    if reference is None or expect is None:
        return {} if reference is expect else {"reply_to": (expect, reference)}
    seen = {
        "message_id": reference.message_id,
        "author_id": reference.author_id,
        "author_name": reference.author_name,
        "content": reference.content,
        "selected_quote": reference.selected,
        "attachments": [{"kind": each.kind, "name": each.name} for each in reference.attachments],
        "needs_lookup": reference.needs_lookup,
        # While it is looked for, a reason is only what will be said if nothing is found.
        "unavailable_reason": None if reference.needs_lookup else reference.unavailable_reason,
        "reference_kind": reference.reference_kind,
        "source_chat_id": reference.source_chat_id,
    }
    return {
        f"reply_to.{key}": (wanted, seen[key])
        for key, wanted in expect.items()
        if key not in NOT_NORMALISED and seen[key] != wanted
    }
