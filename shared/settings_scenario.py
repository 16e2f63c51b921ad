"""What a scenario's configuration is merged over (scenarios.md, "Scenario defaults")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast


def scenario_defaults() -> dict[str, Any]:
    """The tables: one harness that echoes, no judge, no notices. Everything else keeps the contract's default."""
    return {
        "harness": {"kind": "echo", "failure_notice": ""},
        "judge": {"kind": "none"},
        "notices": {"queued": ""},
    }


def scenario_account_defaults() -> dict[str, Any]:
    """What every account of a scenario has unless it says otherwise: no joining, no acknowledgement, Chinese."""
    return {"join_s": 0, "ack": "none", "language": "zh"}


def scenario_mapping(config: Mapping[str, Any]) -> dict[str, Any]:
    """A scenario's `config` over the defaults, key by key, for `from_mapping`. What is malformed is left as it is."""
    merged = _over(scenario_defaults(), config)
    accounts = merged.get("accounts")
    if isinstance(accounts, list):
        merged["accounts"] = [_with(scenario_account_defaults(), item) for item in cast("list[object]", accounts)]
    harnesses = merged.get("harnesses")
    if isinstance(harnesses, Mapping):
        named = cast("Mapping[str, object]", harnesses)
        merged["harnesses"] = {name: _with({"failure_notice": ""}, item) for name, item in named.items()}
    return merged


def _with(defaults: dict[str, Any], item: object) -> object:
    return {**defaults, **cast("Mapping[str, Any]", item)} if isinstance(item, Mapping) else item


def _over(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        merged[key] = _over(cast("Mapping[str, Any]", below), cast("Mapping[str, Any]", value)) if both else value
    return merged
