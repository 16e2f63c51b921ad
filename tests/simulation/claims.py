"""What claims, leases and a harness's breaker promise, kept in a second book and compared with every script."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.simulation.invariants import demand
from tests.simulation.link import LATE_MS

GIVING: Final = frozenset({"claim", "take", "start", "hold", "takeover"})
"""Scripts that give somebody a claim or lease."""


TIMELY: Final = frozenset({"start", "hold"})
"""Those that give nothing to who asked too long ago; of the others only what they name is held for a while."""


def name_of(script: str, argument: Mapping[str, Any], answer: Any) -> str | None:
    """The claim that a script gave, or None."""
    match script:
        case "claim" if answer[0] == "ok":
            return f"{argument['stage']}:{argument['part']}"
        case "take" if answer[0] == "ok":
            return f"{argument['stage']}:{argument['id']}"
        case "start" if answer[0] == "ok":
            return f"turn:{answer[1]}"
        case "hold" if answer == 1:
            return str(argument["name"])
        case "takeover" if answer:
            return str(argument["name"])
        case _:
            return None


@dataclass
class Breaker:
    """A harness's breaker by the rules of behaviour.md, section 5."""

    fails: int = 0
    until_ms: int | None = None

    def heard(self, event: Mapping[str, Any], now_ms: int) -> None:
        """How a call ended. What began before it opened says nothing: only the probe closes an open one."""
        if event["event"] == "ok":
            if self.until_ms is None or event.get("probe"):
                self.fails, self.until_ms = 0, None
            return
        self.fails += 1
        if self.fails >= event["failures"] or event.get("probe"):
            self.until_ms = now_ms + event["open_ms"]


@dataclass
class Claims:
    """Who was given what. After a rollback what was given before is unknown: its holder writes it again."""

    holders: dict[str, str] = field(default_factory=dict[str, str])
    given: dict[str, str] = field(default_factory=dict[str, str])
    breakers: dict[str, Breaker] = field(default_factory=dict[str, Breaker])

    def told(self, script: str, argument: Mapping[str, Any], answer: Any, now_ms: int) -> None:
        """A script was carried out at `now_ms` of the server. Raises Broken."""
        if script == "takeover" and not answer:  # it had moved, or nothing that it named is there any more
            self.holders.pop(argument["name"], None)
            self.given.pop(argument["name"], None)
        name = name_of(script, argument, answer)
        if script == "start" and name is not None and self.given.get(name) == argument["token"]:
            return  # the same call again: its answer is repeated, and nothing starts
        if name is not None:
            late_ms = now_ms - argument["now"]
            demand(script not in TIMELY or late_ms <= LATE_MS, "who gave up long ago is given nothing", (name, late_ms))
            token, holder = argument["token"], self.holders.get(name)
            free = script in ("takeover", "start") or holder in (None, token)
            demand(free, "what is held is given to nobody else", (name, holder, token))
            self.holders[name] = self.given[name] = token
        match script:
            case "claim" if answer[0] == "empty":
                self._back(f"{argument['stage']}:{argument['part']}")
            case "release" if answer == 1:
                self._back(argument["name"])
            case "start" if answer[0] == "ok":
                until_ms = self._breaker(argument["harness"]).until_ms
                shut = until_ms is not None and argument["now"] < until_ms
                demand(not shut, "nothing starts while the breaker is open", answer[1])
            case "move" if answer != ["lost"] and argument["release"] and self._holds(argument):
                self._back(argument["holder"])
            case _:
                pass

    def moved(self, argument: Mapping[str, Any], move: Mapping[str, Any]) -> None:
        """A move took effect for the first time. Raises Broken when it was not its holder's."""
        holder = argument["holder"]
        if holder in self.given:
            demand(self._holds(argument), "only the holder may apply", (holder, move["id"]))
        if event := move.get("breaker"):
            self._breaker(event["harness"]).heard(event, argument["now"])

    def snapshot(self) -> Any:
        """What a server knows that will lose what follows."""
        return copy.deepcopy(self.breakers)

    def restore(self, kept: Any) -> None:
        """The server is back at an earlier moment."""
        self.breakers = copy.deepcopy(kept)
        self.holders.clear()
        self.given.clear()

    def _holds(self, argument: Mapping[str, Any]) -> bool:
        return self.given.get(argument["holder"]) == argument["token"]

    def _back(self, name: str) -> None:
        self.holders.pop(name, None)

    def _breaker(self, harness: str) -> Breaker:
        return self.breakers.setdefault(harness, Breaker())
