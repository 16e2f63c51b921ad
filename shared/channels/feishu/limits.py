"""What Feishu allows, and what its error codes mean.

Facts: channel facts, section 5; codes that it does not name are from Feishu's pages of the call in question.
"""

from typing import Final

from shared.channels.port import Limits
from shared.message import UnavailableReason

LIMITS: Final = Limits(
    text_units=10_000,  # a post may have 30 KB: two thirds are left for what its styles and JSON add
    unit="utf8",
    per_chat=(5, 1.0),  # 5 a second for one group, shared by all its bots, and for one user
    per_account=(50, 1.0),  # 50 a second for one app; 1,000 a minute are the same within a burst
    dedupe_s=43_200,  # tries end after about 7.1 h; 12 h is the least that behaviour.md, section 1, allows
)

WINDOW_MS: Final = 300_000
"""A signed time stamp may be this far from now. Feishu names no window and signs every try anew; 300 s is Slack's."""

LOOKUP_S: Final = 5.0
"""A lookup's time (behaviour.md, section 3)."""

POST_BYTES: Final = 30_000
"""Longest content of a post (channel facts, "Limits": 30 KB); beyond it the text goes without styles (150 KB)."""

MAX_STYLES: Final = 400
"""Most styles of a post: beyond that the work of writing it and its size grow for nothing that anybody reads."""

CARD_DEPTH: Final = 12
CARD_NODES: Final = 1000
"""How much of a card is read (behaviour.md, section 3)."""

UPGRADE_PLACEHOLDER: Final = "请升级至最新版本客户端，以查看内容"
"""What stands for a card that is not shown (oapi-sdk-python, issue 95)."""

RECALLED_BODY: Final = "This message was recalled"
"""The whole body of a recalled message (channel facts, "Lookup")."""

LOOKUP_CODES: Final[dict[int, UnavailableReason]] = {
    230011: "deleted",  # recalled
    230110: "deleted",
    231003: "not-found",  # gone or not visible
    99991672: "permission-denied",  # a scope is missing
    230002: "permission-denied",  # the bot is not in the chat
    230027: "permission-denied",
    230050: "permission-denied",  # invisible to the bot
}

TOKEN_CODES: Final = frozenset({99991661, 99991663, 99991664, 99991668, 99991677})
"""The access token is missing, wrong or ended (Feishu, general error codes): logging in again helps."""

RATE_CODES: Final = frozenset({230020, 11232, 99991400})
"""Too much for the chat, the tenant, the app."""

MARKUP_CODES: Final = frozenset({230001, 230025})
"""The content is wrong or too long: nothing was sent, and the bare text may do."""

UNSURE_CODES: Final = frozenset({2200, 230049})
"""An internal error, or the same message is just being sent: Feishu itself does not know yet."""

REACTION: Final = "Typing"
"""The reaction that stands for typing, which bots cannot do on Feishu."""
