"""Moves: what a stage wants done to one id, as data; applied by one script, all of it or nothing.

Effects are Redis commands made by the stages' `effects.py`; the fields are documented in docs/data-model.md.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from pydantic_core import to_json

from shared.sessions import BINDING_MS
from shared.settings import Settings

Command: TypeAlias = Sequence[str | int | float]


@dataclass(slots=True)
class Create:
    """A new outbound record, standing in delivery from the moment of the move."""

    id: str
    fields: dict[str, str | int]


@dataclass(slots=True)
class Move:
    """One id from the place where `step` was seen to `to`, or to its `end` (disposition, reason, stage).

    scopes: names whose later moves in the batch are not applied when this one is not.
    guards: conditions that are checked again inside the script, by kind (see move.lua). claims: keys that are all free
    or its own, and then hold `claim`. freeze: a frozen input, written where none stands. result: what became of a send.
    tidy: commands that keep bounds, run once a call.
    """

    id: str
    step: int
    to: str = ""
    score: int | None = None
    fields: dict[str, str | int] = field(default_factory=dict[str, str | int])
    drop: list[str] = field(default_factory=list[str])
    guards: list[Command] = field(default_factory=list[Command])
    claims: list[str] = field(default_factory=list[str])
    claim: str = ""
    freeze: tuple[str, str] | None = None
    result: Command | None = None
    tidy: list[Command] = field(default_factory=list[Command])
    effects: list[Command] = field(default_factory=list[Command])
    creates: list[Create] = field(default_factory=list[Create])
    scopes: list[str] = field(default_factory=list[str])
    timers: list[Command] = field(default_factory=list[Command])
    lane_state: str | None = None
    breaker: dict[str, Any] | None = None
    stop: bool = False
    end: tuple[str, str, str] | None = None

    def as_argument(self) -> dict[str, Any]:
        """The form that move.lua reads; what is empty is left out, and so is a field that is dropped."""
        data: dict[str, Any] = {"id": self.id, "step": self.step}
        for name in _PLAIN:
            if value := getattr(self, name):
                data[name] = value
        if self.score is not None:
            data["score"] = self.score
        if fields := {k: v for k, v in self.fields.items() if k not in self.drop}:
            data["fields"] = fields
        if self.creates:
            data["creates"] = [{"id": made.id, "fields": made.fields} for made in self.creates]
        return data


_PLAIN: Final = (
    "to", "drop", "guards", "claims", "claim", "freeze", "result", "effects", "scopes", "timers", "lane_state",
    "breaker", "stop", "end",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a decision record: what a stage decided and why. Never text."""

    stage: str
    outcome: str
    reason: str
    at_ms: int
    attempt: int = 0
    version: int = 0
    evidence: tuple[tuple[str, str | int | bool], ...] = ()

    def to_json(self) -> str:
        """One compact line."""
        data: dict[str, Any] = {"stage": self.stage, "outcome": self.outcome, "reason": self.reason, "at": self.at_ms}
        if self.attempt:
            data["attempt"] = self.attempt
        data |= {"version": self.version, **dict(self.evidence)}
        return to_json(data).decode()

    def repeats(self, lines: str) -> bool:
        """True when the newest line tells the same of the same stage and try: a wait, not another try that failed."""
        newest = lines.removesuffix("\n").rpartition("\n")[2]
        if not newest:
            return False
        before: dict[str, Any] = json.loads(newest)
        told = (before["stage"], before["outcome"], before["reason"], before.get("attempt", 0))
        return told == (self.stage, self.outcome, self.reason, self.attempt)


QUEUED: Final = "queued"
"""The state of a lane's current turn that stands in dispatch and has not started: for a command there is none."""
END_MARK_MS = 3_600_000
"""How long the trimmed record of a silenced message stays as an end mark: far longer than any script call that was
delivered late (a connection dies after 30 s)."""


def retention(settings: Settings) -> dict[str, int]:
    """How long records and frozen inputs stay after their end, milliseconds."""
    return {
        "keep_ms": int(settings.pipeline.decision_days * 86_400_000),
        "frozen_ms": int(settings.pipeline.frozen_days * 86_400_000),
        "short_ms": END_MARK_MS,
    }


def slots(settings: Settings) -> dict[str, int]:
    """Turns at once per harness, by name; the unnamed one is `default`."""
    return {"default": settings.harness.concurrency} | {n: h.concurrency for n, h in settings.harnesses.items()}


TOUCH_MS: Final = 3_600_000
"""How old the note of a binding's last use may be where nothing is measured by it but the binding's own life."""


def turn(settings: Settings, token: str, fresh: str) -> dict[str, Any]:
    """What a script needs that starts a turn. `fresh`: the session's id where the lane has none."""
    known = {"default": settings.harness, **settings.harnesses}
    return {
        "token": token,
        "fresh": fresh,
        "idle": {name: int(harness.session_idle_s * 1000) for name, harness in known.items()},
        "touch_ms": TOUCH_MS,
        "binding_ms": BINDING_MS,
    }


def lanes(settings: Settings) -> dict[str, Any]:
    """What every script needs that may let a lane's head start."""
    return {"slots": slots(settings), "order_wait_ms": int(settings.pipeline.order_wait_s * 1000)}
