"""Faults to plant: each takes one guard away, and the simulation must notice."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from workers.delivery import effects as delivery
from workers.delivery.policy import LedgerState


@dataclass(frozen=True, slots=True)
class Fault:
    """scripts: by name, a text and what stands in its place. python: a module, a name in it and what it becomes."""

    scripts: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    python: tuple[Any, str, Any] | None = None


def _intents_ignored(ledger: Mapping[int, LedgerState], parts: int) -> int | str:
    return next((n for n in range(parts) if ledger.get(n) != "sent"), "done")


FAULTS: Final[Mapping[str, Fault]] = {
    "an existing intent is ignored": Fault(
        {
            "ledger": (
                "if state and state ~= 'not-sent' and not (state == 'intent' and token == A.token)",
                "if false",
            )
        },
        (delivery, "next_part", _intents_ignored),
    ),
    "a move is applied though the step did not match": Fault(
        {"move": ("elseif lost or tonumber(r.step) ~= m.step then", "elseif lost then")}
    ),
    "the lane is released at answered": Fault(
        {
            "move": (
                "if m.lane_state then call('HSET', lane_key(r.lane), 'state', m.lane_state) end",
                "if m.lane_state == 'answered' then call('HDEL', lane_key(r.lane), 'current') end",
            )
        }
    ),
    "accept has no guard": Fault({"accept": ("if call('EXISTS', key) == 0 then", "if true then")}),
    "a ticket is given back and nobody is woken": Fault(
        {"move": ("if m.to == 'parked:lane' then lane_wake(r.lane) end", "")}
    ),
    "an earlier message is not waited for": Fault(
        dict.fromkeys(("move", "fire", "start"), ("if now < until_ms then", "if false then"))
    ),
    "the end of a turn leaves the depth": Fault({"move": ("count(r.account, -1)", "")}),
    "a wake-up's flag is never cleared": Fault(
        {"claim": ("call('SREM', P .. 'flags', name)", ""), "repush": ("call('SREM', P .. 'flags', name)", "")}
    ),
}
