"""What Slack allows, and what its error words mean."""

from typing import Final

from shared.channels.port import Limits
from shared.message import UnavailableReason

LIMITS: Final = Limits(
    text_units=4000,  # what Slack recommends for one message; the hard end, 40,000, leaves room for escapes
    unit="code_points",
    per_chat=(10, 10.0),  # short bursts over about one post a second and channel (chat.postMessage, special tier)
    per_account=(50, 60.0),  # tier 3, the least that the calls made here have
    dedupe_s=3600,  # tries end after about six minutes; an hour is the least that behaviour.md, section 1, allows
)

WINDOW_MS: Final = 300_000
"""A request's time stamp may be this far from now, both ends included (slack_sdk, SignatureVerifier)."""

LOOKUP_S: Final = 5.0
"""A lookup's time (behaviour.md, section 3)."""

FILES_HOST: Final = "files.slack.com"

SLACKBOT: Final = "USLACKBOT"

SPOKEN: Final = frozenset({"", "file_share", "thread_broadcast", "bot_message", "me_message"})
"""Subtypes of messages that somebody said; every other one reports something (docs, "message event")."""

# Channel facts, section 1, "History lookup". A channel that we just had an event from is not unknown: a private one
# that the bot is not in looks like that.
LOOKUP_ERRORS: Final[dict[str, UnavailableReason]] = {
    "channel_not_found": "permission-denied",
    "not_in_channel": "permission-denied",
    "missing_scope": "permission-denied",
    "invalid_auth": "permission-denied",
    "not_authed": "permission-denied",
    "token_revoked": "permission-denied",
    "token_expired": "permission-denied",
    "account_inactive": "permission-denied",
    "access_denied": "permission-denied",
    "no_permission": "permission-denied",
    "ekm_access_denied": "permission-denied",
    "not_allowed_token_type": "permission-denied",
    "thread_not_found": "not-found",
    "message_not_found": "not-found",
}

RATE_ERRORS: Final = frozenset({"ratelimited", "rate_limited"})
UNSURE_ERRORS: Final = frozenset({"fatal_error", "internal_error", "service_unavailable", "request_timeout"})
"""Errors after which Slack itself does not know: its method pages say that the call may have taken effect."""
