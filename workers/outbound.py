"""What is to be sent: an answer's parts, on the record of its turn; a command's reply or a notice, on its own."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields

from pydantic_core import to_json

from shared.channels import channel
from shared.channels.port import Part, Target
from shared.channels.splitting import plan_parts
from shared.settings import AccountSettings, Settings
from shared.texts import TextName, text
from workers.moves import Create


def planned(account: AccountSettings, parts: Sequence[Part]) -> list[Part]:
    """The parts as they will be sent: rendered, cut clean of our own blocks, split to the platform's length."""
    way = channel(account.channel)
    return plan_parts(parts, way.limits, way.render)


def to_send(parts: Sequence[Part], target: Target, purpose: str, made_ms: int) -> dict[str, str | int]:
    """The fields of a record that say what delivery sends, and where to. `made_ms`: since when it waits to be sent."""
    return {
        "parts": to_json([_lean(p) for p in parts]).decode(),
        "target": to_json(_lean(target)).decode(),
        "purpose": purpose,
        "made": made_ms,
        "back": "delivery",
    }


def record(
    id_: str, account: AccountSettings, target: Target, parts: Sequence[Part], purpose: str, at_ms: int
) -> Create:
    """A record that stands in delivery for itself: a notice, a command's reply."""
    whose: dict[str, str | int] = {"account": account.id, "channel": account.channel, "at": at_ms}
    return Create(id_, whose | to_send(parts, target, purpose, at_ms))


def fixed(
    id_: str,
    name: TextName,
    values: Mapping[str, str | int],
    account: AccountSettings,
    settings: Settings,
    target: Target,
    message_text: str,
    at_ms: int,
    *,
    language: str = "",
    purpose: str = "notice",
) -> Create:
    """A fixed text of `shared.texts` as an outbound record that stands alone."""
    words = text(name, language or account.language, message_text, settings.texts, **values)
    return record(id_, account, target, planned(account, [Part("text", words)]), purpose, at_ms)


def parts_of(stored: str) -> list[Part]:
    """The parts of a stored record."""
    return [Part(**p) for p in json.loads(stored)]


def target_from(stored: str) -> Target:
    """The target of a stored record."""
    return Target(**json.loads(stored))


def _lean(value: Part | Target) -> dict[str, object]:
    return {f.name: v for f in fields(value) if (v := getattr(value, f.name)) not in (None, "", {})}
