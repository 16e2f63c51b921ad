"""What DingTalk allows a robot, and what its numbers mean. "Facts" is the channel facts sheet, section 4."""

from typing import Final

from shared.channels.port import Limits

LIMITS: Final = Limits(
    # msgParam holds 15,000 bytes of JSON (facts, "Limits"). Escapes at most double a text (quotes, line ends), and the
    # title and the frame around it take some 300 bytes.
    text_units=7_000,
    unit="utf8",
    per_chat=(20, 60.0),  # webhook robots: 20 a minute, then they are blocked for 10 min (facts, "Limits")
    per_account=(1000, 60.0),  # for an app's robot no figure is found (facts, "Limits"): bounds a runaway only
    dedupe_s=86_400,  # behaviour.md, section 1; redeliveries are seen after 16 s and 60 s
    keeps_index=True,
    looks_back=True,
)

WINDOW_MS: Final = 3_600_000
"""A request's signed time stamp may be one hour from now (facts, "Verification")."""

WEBHOOK_MARGIN_MS: Final = 30_000
"""So long before its end a sessionWebhook is used no more: ours, for clocks that differ and the request's way."""

API_URL: Final = "https://api.dingtalk.com"
"""Where robots send, log in and ask for files (facts, "Send")."""

HOSTS: Final = (".dingtalk.com",)
"""Ends of the hosts that a sessionWebhook may have (the brief of this channel); the usual one is oapi.dingtalk.com."""

FILE_HOSTS: Final = (*HOSTS, ".aliyuncs.com")
"""Ends of the hosts that a file may lie on: DingTalk's storage is Alibaba's cloud. The address comes from DingTalk
itself, never from an event, and nothing secret goes with the request."""

SECONDS_BELOW: Final = 10_000_000_000
"""A createdAt below this is in seconds (behaviour.md, "Evidence by channel")."""

PLACEHOLDER: Final = "[interactive card message]"
"""What DingTalk writes for a card that it cannot show, in any case (facts, "Quote")."""

RATE_CODES: Final = frozenset({130101, 410100, 90018})
"""errcode of a webhook that was used too fast: 130101 and 410100 for robots (open.dingtalk.com, custom robots), 90018
for an app's calls (its list of global error codes)."""

UNSURE_CODES: Final = frozenset({-1})
"""The system is busy (list of global error codes): whether the call took effect is not said."""

RATE_WORDS: Final = ("qpslimit", "throttling", "flowcontrol")
"""Parts of an error's `code` on api.dingtalk.com that mean: too fast, whatever the HTTP status."""

TOKEN_WORDS: Final = ("invalidauthentication", "invalidaccesstoken")
"""Parts of an error's `code` on api.dingtalk.com that mean: the access token is used up or unknown."""

TITLE: Final = 40
"""Code points of a message's title, which lists of chats and notifications show; ours."""

CALL_TOPIC: Final = "/v1.0/im/bot/messages/get"
"""The topic of frames that hold a message (facts, "Transport")."""
