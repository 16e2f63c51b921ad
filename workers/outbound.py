"""Making outbound records: an answer's parts, a command's reply, a notice; each with its own id and ledger."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

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


def record(
    id_: str,
    account: AccountSettings,
    target: Target,
    parts: Sequence[Part],
    purpose: str,
    at_ms: int,
    *,
    parent: str = "",
    sender_id: str = "",
    role: str = "",
) -> Create:
    """A record that stands in delivery. `parent`: the turn that waits for it, or '' when it stands alone."""
    fields: dict[str, str | int] = {
        "account": account.id,
        "channel": account.channel,
        "parts": json.dumps([_lean(asdict(p)) for p in parts], ensure_ascii=False),
        "target": json.dumps(_lean({**asdict(target), "route": dict(target.route)}), ensure_ascii=False),
        "purpose": purpose,
        "at": at_ms,
        "back": "delivery",
    }
    fields |= {k: v for k, v in (("parent", parent), ("sender", sender_id), ("role", role)) if v}
    return Create(id_, fields)


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


def _lean(data: Mapping[str, object]) -> dict[str, object]:
    return {k: v for k, v in data.items() if v not in (None, "", {})}
