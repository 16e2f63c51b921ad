"""Notices to the sender of a turn that died: once, in the account's language, standing alone in delivery."""

from shared.channels.port import Part
from shared.frozen import FrozenTurn
from shared.settings import AccountSettings, Settings
from shared.texts import text
from workers import outbound
from workers.context import harness_settings
from workers.moves import Move


def failure(move: Move, frozen: FrozenTurn, account: AccountSettings, settings: Settings, now_ms: int) -> None:
    """Add `failure_notice` to a move that ends a turn as dead (auto: the built-in sentence; empty: nothing)."""
    wanted = (harness_settings(settings, frozen.harness) or settings.harness).failure_notice
    if not wanted or move.end is None or move.end[0] != "dead":
        return
    words = text("failure", frozen.language, frozen.text, settings.texts) if wanted == "auto" else wanted
    parts = outbound.planned(account, [Part("text", words)])
    move.creates.append(
        outbound.record(f"{move.id}-{move.step}-failure", account, frozen.target, parts, "notice", now_ms)
    )
