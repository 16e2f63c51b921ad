"""What WhatsApp allows, and what its error codes mean."""

from typing import Final

from shared.channels.port import Limits

LIMITS: Final = Limits(
    text_units=4000,  # the Cloud API takes 4,096 characters; 4,000 is what dsh-im uses on the web form
    unit="utf16",
    per_chat=(10, 60.0),  # one message per 6 s to one user, with room for bursts (pywa, error 131056)
    per_account=(20, 1.0),  # the least of Meta's "Throughput": 20 a second in Coexistence, 80 elsewhere
    dedupe_s=7 * 86_400,  # Meta delivers again for up to 7 days (360dialog, "Receiving messages")
    keeps_index=True,  # the Cloud API's quotes never have a body
)
"""`reply_window_s` stays 0: the platform's 24 hours run from the user's last message, which is not the one answered,
and the web form has none. The platform's own refusal (`WINDOW_CLOSED`) tells."""

GRAPH_URL: Final = "https://graph.facebook.com"
GRAPH_VERSION: Final = "v23.0"
"""The Graph API's version, unless `credentials.api_url` ends in another one."""

MEDIA_HOST: Final = "lookaside.fbsbx.com"
"""Where the Cloud API's media addresses lead (Meta, "Media", "Download media")."""

WINDOW_CLOSED: Final = 131047
"""More than 24 hours since the user's last message: only templates pass (pywa, errors.py)."""

RATE_CODES: Final = frozenset({4, 80007, 130429, 131048, 131056})
"""Limits of the app, the business account, the throughput, spam and the pair of users (pywa, errors.py)."""

BRIDGE_URL: Final = "http://127.0.0.1:8701/answers"
"""Where the bridge takes answers unless `credentials.bridge_url` says otherwise: docs/examples/whatsapp_bridge.py."""

WRAPPERS: Final = (
    "ephemeralMessage",
    "viewOnceMessage",
    "viewOnceMessageV2",
    "viewOnceMessageV2Extension",
    "documentWithCaptionMessage",
    "editedMessage",
    "associatedChildMessage",
    "groupStatusMessage",
    "groupStatusMessageV2",
    "deviceSentMessage",
)
"""Keys whose object holds the message itself under `message` (WAProto.proto; Baileys, normalizeMessageContent)."""

WRAPPED: Final = 5
"""Levels of wrapping that are opened, as in Baileys."""

OWN_ID_PREFIX: Final = "3EB0"
"""Ids made by a linked client such as Baileys begin so (Baileys, src/Utils/generics.ts)."""
