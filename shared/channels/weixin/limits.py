"""What Weixin's iLink API allows, and what its numbers mean."""

from typing import Final

from shared.channels.port import Limits

LIMITS: Final = Limits(
    text_units=4000,  # where the official client cuts (Tencent/openclaw-weixin); JavaScript counts UTF-16 units
    unit="utf16",
    per_chat=(10, 60.0),  # none is published: as many as one message may get, and a minute's breath
    per_account=(30, 60.0),  # none is published; issues 142 and 270 of the official client report a rate limit
    dedupe_s=86_400,  # behaviour.md, section 1; the longest redelivery reported is 11 s, or a cursor that fell back
    reply_window_s=86_400,  # replies are taken for 24 h (issues 156 and 204, answered by Tencent)
    replies=10,  # issue 81, and the channel facts, "Limits"
    keeps_index=True,
    looks_back=True,
)

CLIENT_VERSION: Final = (2, 4, 9)
"""The release of the official client whose protocol is spoken here (channel facts, section 1)."""

BOT_AGENT: Final = "Millstream/0.1"
"""Who we say we are, in the form of a user agent (`bot_agent` of src/api/types.ts)."""

APP_ID: Final = "bot"
"""The header iLink-App-Id (channel facts, section 1, "Headers")."""

MAX_ID: Final = 2**64 - 1
"""Message ids are unsigned 64-bit numbers (channel facts, section 1, "Message id")."""

ID_TIME_SHIFT: Final = 22
"""An id without its low 22 bits is Unix ms (same place)."""

EARLIEST_MS: Final = 1_577_836_800_000
"""2020-01-01 UTC: an id that decodes to an earlier time is none of these (behaviour.md, "Outbound index")."""

AHEAD_MS: Final = 86_400_000
"""And neither is one more than a day in the future."""

FINGERPRINT_MS: Final = 12_000
"""So long, in received time, one text of one sender is one message (behaviour.md, section 1): copies under other ids
come 2 to 11 s apart. The prefix of these keys, `fp30s`, is the golden events'; it says nothing about the window."""

SEND_S: Final = 15.0
"""The official client waits so long for sendmessage (src/api/api.ts)."""

TYPING_S: Final = 5.0
"""A typing sign older than this means nothing: official clients renew it every five seconds."""

CDN_HOST: Final = "novac2c.cdn.weixin.qq.com"
CDN_DOWNLOAD: Final = f"https://{CDN_HOST}/c2c/download?encrypted_query_param="
"""Where media lie (channel facts, "Media"); an event's own `full_url` has the same form."""

BOT_MESSAGE: Final = 2
FINISHED: Final = 2
TEXT_ITEM: Final = 1
"""Values of message_type, message_state and an item's type (src/api/types.ts)."""

KNOWN_TYPES: Final = frozenset({0, 1, 2, 3, 4, 5, 8})
"""Types of a quoted item that may stand for a text or a file: 1 to 5 as in src/api/types.ts, 0 the quote by id only,
8 a quoted bot message of April 2026 (issue 23)."""

SEND_REFUSED: Final = -2
"""`ret` and `errcode`: the rate, the context or the arguments are not right, which only `errmsg` tells apart (channel
facts, section 1; "rate limited" as issues 142 and 270 show it)."""
