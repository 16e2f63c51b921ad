"""The operator's switches: read_only, safe_mode, paused; first values from the configuration, then Redis rules.

Turning read-only or safe mode on works on the very next message. Turning one off takes effect when a process restarts,
or at once with `apply` (behaviour.md, section 5): a process that has seen it on stays with it until then.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shared.channels.port import Switches
from shared.redis.client import Redis
from shared.redis.keys import Keys
from shared.settings import Settings

NAMES = ("read_only", "safe_mode", "paused")
AUDIT_MAX = 10_000
"""Audit records kept; older ones are trimmed."""


@dataclass(frozen=True, slots=True)
class State:
    """The switches as a process must obey them now."""

    read_only: bool
    safe_mode: bool
    paused: bool

    @property
    def sending(self) -> Switches:
        """What every channel's `send` asks first."""
        return Switches(read_only=self.read_only, safe_mode=self.safe_mode)


@dataclass(slots=True)
class SwitchBoard:
    """The switches as one process sees them."""

    client: Redis
    keys: Keys
    _stuck: set[str] = field(default_factory=set[str])
    _applied: str = ""
    _last: State | None = None
    _seen: tuple[str, ...] = ()

    def first_values(self, settings: Settings, now_ms: int) -> None:
        """Write the configuration's values where none was ever set; starting in read-only is audited."""
        for name in NAMES:
            self.client.hsetnx(self.keys.switches, name, int(getattr(settings, name)))
        if self.read().read_only:
            self.audit("config", "read-only-mode", now_ms)

    def read(self) -> State:
        """Ask Redis. Raises redis errors: who cannot ask must not send."""
        return self.obeyed([word for pair in self.client.hgetall(self.keys.switches).items() for word in pair])

    def last(self) -> tuple[State, tuple[str, ...]]:
        """What was obeyed last, and the switches as they were then: for a script that compares before it acts."""
        return (self.read(), self._seen) if self._last is None else (self._last, self._seen)

    def obeyed(self, flat: Sequence[str]) -> State:
        """What this process must obey, given the switches as Redis has them (name, value, name, value, …)."""
        state = self._obeyed(dict(zip(flat[::2], flat[1::2], strict=True)))
        self._last, self._seen = state, tuple(flat)
        return state

    def _obeyed(self, raw: Mapping[str, str]) -> State:
        if raw.get("applied", "") != self._applied:
            self._applied = raw.get("applied", "")
            self._stuck.clear()
        values = {name: raw.get(name) == "1" for name in NAMES}
        self._stuck |= {name for name in ("read_only", "safe_mode") if values[name]}
        return State(
            read_only=values["read_only"] or "read_only" in self._stuck,
            safe_mode=values["safe_mode"] or "safe_mode" in self._stuck,
            paused=values["paused"],
        )

    def write(self, name: str, on: bool, who: str, now_ms: int, *, apply: bool = False) -> None:
        """Turn a switch. Raises ValueError for a name that is none."""
        if name not in NAMES:
            raise ValueError(f"no switch {name}; there are {', '.join(NAMES)}")
        with self.client.pipeline() as pipe:
            pipe.hset(self.keys.switches, name, int(on))
            if apply:
                pipe.hincrby(self.keys.switches, "applied", 1)
            pipe.execute()
        self.audit("switch", f"{name}={'on' if on else 'off'}", now_ms, who=who)

    def audit(self, kind: str, reason: str, now_ms: int, **more: str) -> None:
        """Add one audit record: a kind, a reason, never text."""
        self.client.xadd(
            self.keys.audit, audit_fields(kind, reason, now_ms, **more), maxlen=AUDIT_MAX, approximate=True
        )


def audit_command(keys: Keys, kind: str, reason: str, now_ms: int, **more: str) -> list[str | int]:
    """The same record as a Redis command, for a move to write with everything else."""
    row = audit_fields(kind, reason, now_ms, **more)["row"]
    return ["XADD", keys.audit, "MAXLEN", "~", AUDIT_MAX, "*", "row", row]


def audit_fields(kind: str, reason: str, now_ms: int, **more: str) -> dict[str, str]:
    """The one field of an audit record."""
    return {"row": json.dumps({"type": kind, "reason": reason, "at": now_ms, **more}, ensure_ascii=False)}
