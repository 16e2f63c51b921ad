"""What Telegram allows, and the names of things that belong to nobody."""

from typing import Final

from shared.channels.port import Limits

LIMITS: Final = Limits(
    text_units=4096,  # MessageLimit.MAX_TEXT_LENGTH of python-telegram-bot; counted in UTF-16 units, as entities are
    unit="utf16",
    per_chat=(20, 60.0),  # FloodLimit.MESSAGES_PER_MINUTE_PER_GROUP of python-telegram-bot; short bursts pass
    per_account=(30, 1.0),  # FloodLimit.MESSAGES_PER_SECOND of python-telegram-bot
    dedupe_s=86_400,  # an update lives 24 h: tdlib/telegram-bot-api, Client.cpp
)

MAX_ENTITIES: Final = 100
"""Entities of one message that the platform keeps (MessageLimit.MESSAGE_ENTITIES of python-telegram-bot)."""

TYPING_TIMEOUT_S: Final = 5.0
"""A typing sign older than this means nothing: the platform itself shows it for 5 s (Bot API, sendChatAction)."""

ANONYMOUS_ADMIN: Final = "1087968824"
CHANNEL_POSTER: Final = "136817688"
LINKED_CHANNEL: Final = "777000"
PLACEHOLDERS: Final = frozenset({ANONYMOUS_ADMIN, CHANNEL_POSTER, LINKED_CHANNEL})
"""Users that stand for somebody else, who is in `sender_chat` (FakeUserID and ServiceChat of python-telegram-bot)."""

SERVICE_KEYS: Final = frozenset(
    {
        "new_chat_members", "left_chat_member", "new_chat_title", "new_chat_photo", "delete_chat_photo",
        "group_chat_created", "supergroup_chat_created", "channel_chat_created", "message_auto_delete_timer_changed",
        "migrate_to_chat_id", "migrate_from_chat_id", "pinned_message", "successful_payment", "refunded_payment",
        "users_shared", "chat_shared", "connected_website", "write_access_allowed", "passport_data",
        "proximity_alert_triggered", "boost_added", "chat_background_set", "forum_topic_created",
        "forum_topic_edited", "forum_topic_closed", "forum_topic_reopened", "general_forum_topic_hidden",
        "general_forum_topic_unhidden", "giveaway_created", "giveaway", "giveaway_winners", "giveaway_completed",
        "video_chat_scheduled", "video_chat_started", "video_chat_ended", "video_chat_participants_invited",
        "web_app_data", "checklist_tasks_done", "checklist_tasks_added", "direct_message_price_changed",
        "paid_message_price_changed", "gift", "unique_gift", "suggested_post_approved", "suggested_post_declined",
    }
)  # fmt: skip
"""Keys of messages that report something instead of saying something (Bot API, "Message")."""

UNREADABLE_KEYS: Final = frozenset(
    {"location", "venue", "contact", "poll", "dice", "game", "story", "invoice", "checklist", "paid_media"}
)
"""Keys of messages that say something, but neither text nor a file."""
