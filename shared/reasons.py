"""Every reason that a decision record, a metric or a dead letter may name: one closed list.

Reasons of gate and admission have dots, everything later has hyphens (behaviour.md, section 5); three spellings are
fixed: `read-only-mode`, `quoted_text_unavailable`, `quoted_text_resolved`.
"""

from typing import Final

ADMISSION: Final = frozenset(
    {
        "echo", "edit", "notice", "empty", "bot", "bot.loop", "stale", "duplicate", "conflict", "access", "command",
        "read-only-mode", "batch.full", "batch.not_collected", "batch.collected", "question", "approval", "ocr.held",
        "account.removed",
    }
)  # fmt: skip
GATE: Final = frozenset(
    {
        "owner.private", "owner.addressed", "owner.unaddressed", "owner.all", "system", "private", "flow.rate",
        "flow.sender", "flow.chat", "flow.account", "flow.busy", "lane.full", "cooldown.entered", "cooldown.active",
        "cooldown.pierced", "rule.addressed", "rule.owner_name", "rule.keyword", "no_signal", "judge.respond",
        "judge.declined", "judge.failed", "engine.not_triggered", "engine.respond", "engine.declined", "send-off",
        "joined",
    }
)  # fmt: skip
QUOTES: Final = frozenset({"quoted_text_unavailable", "quoted_text_resolved", "none", "source-verification-failed"})
DEAD: Final = frozenset(
    {
        "attempts-exhausted", "harness-refused", "turn-timeout", "effect-unknown", "delivery-refused",
        "delivery-unknown", "source-verification-failed", "gave-up", "crash-loop", "move-failed", "poison",
        "unreadable", "newer-version", "frozen-mismatch", "media-gone",
    }
)  # fmt: skip
CANCELLED: Final = frozenset({"stop", "interaction-timeout"})
SENDING: Final = frozenset(
    {"window-closed", "paused", "channel-breaker", "safe-mode", "read-only-mode", "denied", "sent", "not-sent"}
)
LATER: Final = frozenset(
    {
        "harness-transient",
        "handed-back",
        "session-unavailable",
        "taken-over",
        "lease-lost",
        "judged",
        "quoted",
        "answered",
        "empty",
        "rate-limited",
        "harness-breaker",
        "not-connected",
        "draft",
    }
)

NEEDS_AGAIN: Final = frozenset({"effect-unknown", "turn-timeout", "delivery-unknown"})
"""Replaying these needs an operator's explicit `--again`: doing it again may do it twice."""

ALL: Final = ADMISSION | GATE | QUOTES | DEAD | CANCELLED | SENDING | LATER
