"""The gate: does she answer this message, and why. Pure; first hit wins (behaviour.md, section 2, steps 1 to 6).

Reads the current text only: what was quoted has no effect (G-67). Times are Unix milliseconds of `received_at_ms`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from shared.admission import addressed
from shared.message import Message
from shared.settings import AccountSettings
from shared.settings_accounts import Role

FLOW_WINDOW_MS: Final = 60_000
"""`direct_per_minute` counts in a sliding 60 s (behaviour.md, section 2, step 3)."""


@dataclass(frozen=True, slots=True)
class GateFacts:
    """What the gate knows besides the message.

    judge: a light judge is configured. cooldown_until_ms: the group's COOLDOWN, None when IDLE. allowed_ms: when the
    sender's allowed direct messages came. owner_spoke_ms: when the owner was last answered unaddressed in this group.
    """

    judge: bool = False
    cooldown_until_ms: int | None = None
    allowed_ms: tuple[int, ...] = ()
    owner_spoke_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Ruling:
    """`respond`, `silent`, `throttled` or `judge` (ask the judge; the reason is still empty then)."""

    kind: Literal["respond", "silent", "throttled", "judge"]
    reason: str = ""


def gate(message: Message, role: Role, account: AccountSettings, at_ms: int, facts: GateFacts) -> Ruling:
    """Rule on one message, received at `at_ms`. `account` is as the routes leave it for this message."""
    if role == "owner":
        return _owner(message, account, at_ms, facts)
    if role == "system":
        return Ruling("silent", "system")
    if message.chat_type == "private":
        return _private(account, at_ms, facts)
    if _any_in(account.engagement.negative_phrases, message.text):
        return Ruling("silent", "cooldown.entered")
    rule = _rule(message, account)
    if facts.cooldown_until_ms is not None and at_ms < facts.cooldown_until_ms:
        pierced = rule is not None and _any_in(account.engagement.piercing_words, message.text)
        return Ruling("respond", "cooldown.pierced") if pierced else Ruling("silent", "cooldown.active")
    if rule is not None:
        return Ruling("respond", rule)
    return Ruling("judge") if facts.judge else Ruling("silent", "no_signal")


def is_quiet(hour: int, start: int, end: int) -> bool:
    """True in quiet hours; `hour` (0 to 23) is of the account's time zone. Only told to the judge, never a silence.

    start = end is never quiet; start > end crosses midnight (behaviour.md, section 2, Quiet hours).
    """
    if start <= end:
        return start <= hour < end
    return hour >= start or hour < end


def _owner(message: Message, account: AccountSettings, at_ms: int, facts: GateFacts) -> Ruling:
    if message.chat_type == "private":
        return Ruling("respond", "owner.private")
    if addressed(message, account):
        return Ruling("respond", "owner.addressed")
    if account.owner_group_mode != "all":
        return Ruling("silent", "owner.unaddressed")
    interval_ms, last_ms = account.owner_min_interval_s * 1000, facts.owner_spoke_ms
    rested = interval_ms == 0 or last_ms is None or at_ms - last_ms >= interval_ms
    return Ruling("respond", "owner.all") if rested else Ruling("silent", "owner.unaddressed")


def _private(account: AccountSettings, at_ms: int, facts: GateFacts) -> Ruling:
    limit = account.direct_per_minute
    recent = sum(1 for allowed_ms in facts.allowed_ms if at_ms - allowed_ms < FLOW_WINDOW_MS)
    # 0 switches a limit off, as with every limit of the account.
    return Ruling("throttled", "flow.rate") if 0 < limit <= recent else Ruling("respond", "private")


def _rule(message: Message, account: AccountSettings) -> str | None:
    if addressed(message, account):
        return "rule.addressed"
    if account.owner_name and account.owner_name in message.text:
        return "rule.owner_name"
    return "rule.keyword" if _any_in(account.engagement.keywords, message.text) else None


def _any_in(words: Iterable[str], text: str) -> bool:
    lowered = text.lower()
    return any(word in lowered for word in _lowered(tuple(words)))


@lru_cache(maxsize=256)
def _lowered(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word.lower() for word in words)
