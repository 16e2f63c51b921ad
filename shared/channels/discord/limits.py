"""What Discord allows, and what the numbers in its messages mean."""

from typing import Final

from shared.channels.port import Limits

LIMITS: Final = Limits(
    text_units=2000,  # content of one message (channel facts, section 3, "Outbound")
    unit="utf16",  # the documents name no unit: UTF-16 counts most, so no reading of the limit is passed
    per_chat=(5, 5.0),  # no figure is documented, routes tell theirs by header; this is careful
    per_account=(50, 1.0),  # the global limit (channel facts, section 3, "Rate")
    dedupe_s=86_400,  # behaviour.md, section 1; a RESUME replays minutes
)

LOOKUP_S: Final = 5.0
"""A lookup's time (behaviour.md, section 3)."""

NONCE_CHARS: Final = 25
"""Longest nonce (channel facts, section 3, "Outbound")."""

FILE_HOSTS: Final = frozenset({"cdn.discordapp.com", "media.discordapp.net"})
"""Where attachments lie (`url` and `proxy_url` in the golden events)."""

DIRECT: Final = 1
"""Channel type of a direct conversation with one person."""

THREADS: Final = frozenset({10, 11, 12})
"""Channel types of threads (channel facts, section 3, "Threads")."""

SPOKEN: Final = frozenset({0, 19, 20, 23})
"""Message types that somebody said: plain, reply, and the answers to commands; every other one reports something."""

REPLIES: Final = frozenset({19, 23})
"""Message types whose reference is a quote (channel facts, section 3, "Quote fields")."""

FORWARD: Final = 1
"""Type of a message_reference that forwards; 0 is a reply's."""

SUPPRESS_EMBEDS: Final = 1 << 2
"""Message flag: no previews of links (API documents, "Message Flags")."""
