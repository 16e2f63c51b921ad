"""Faults to plant: each takes one guard away, and the simulation must notice."""

from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from unittest import mock

from tests.simulation import planted_python as python

Texts = tuple[tuple[str, str], ...]
FROSTY: Final[Mapping[str, Any]] = {"freezes": 0.08, "leisure": True, "kills": 0.0, "calls": 0.0}
"""A mixture in which processes stand still beyond their leases, and go on."""
ROUGH: Final[Mapping[str, Any]] = {"calls": 0.03, "kills": 0.02, "freezes": 0.01, "twice": 0.1}
"""A mixture in which calls are repeated, and work changes hands."""
SMOOTH: Final[Mapping[str, Any]] = {
    "loss": 0.0, "mess": 0.0, "calls": 0.0, "kills": 0.0, "freezes": 0.0, "rollbacks": 0.0, "spoils": 0.0, "full": 0.0,
    "turns": 0.0, "leisure": False,
}  # fmt: skip
"""A mixture in which nothing is lost, so that nothing needs to be brought back."""


@dataclass(frozen=True, slots=True)
class Fault:
    """scripts: by name, texts and what stands in their place. patches: an object, a name in it and what it becomes.
    mix: what the seed's mixture is changed to, so that the fault has a chance to show. first: a seed near one that
    finds it."""

    scripts: Mapping[str, Texts] = field(default_factory=dict[str, Texts])
    patches: tuple[tuple[Any, str, Any], ...] = ()
    mix: Mapping[str, Any] = field(default_factory=dict[str, Any])
    first: int = 1

    @contextmanager
    def planted(self) -> Generator[None]:
        """Put the patches in place while it stands; the scripts are the world's business."""
        with ExitStack() as stack:
            for target, name, value in self.patches:
                stack.enter_context(mock.patch.object(target, name, value))
            yield


def _move(old: str, new: str) -> Mapping[str, Texts]:
    return {"move": ((old, new),)}


def _everywhere(old: str, new: str, *scripts: str) -> Mapping[str, Texts]:
    return dict.fromkeys(scripts, ((old, new),))


_PLACE: Final = "local place, account = unpack("

FAULTS: Final[Mapping[str, Fault]] = {
    "a move is applied though the step did not match": Fault(
        _move("elseif lost or tonumber(r.step) ~= m.step then", "elseif lost then"), mix=ROUGH, first=10
    ),
    "accept has no guard": Fault(
        {"accept": (("if not known[m.id] and not (some and call('EXISTS', keys[i]) == 1) then", "if true then"),)},
        mix=ROUGH,
    ),
    "a takeover treats sending as answered": Fault(
        {"takeover": ((_PLACE, f"call('DEL', P .. 'ledger:' .. (call('HGET', rec(id), 'out') or '')) {_PLACE}"),)},
        mix=ROUGH,
    ),
    "the intent is written after the send": Fault(patches=python.LATE_INTENT),
    "an intent's refusal is ignored": Fault(patches=python.REFUSAL_IGNORED, mix=FROSTY),
    "an existing intent is ignored": Fault(
        {"send": (("if state and state ~= 'not-sent' then return {state} end", ""),)}, python.INTENTS_IGNORED, ROUGH
    ),
    "the lane is released at answered": Fault(
        _move(
            "if m.lane_state then call('HSET', lane_key(r.lane), 'state', m.lane_state) end",
            "if m.lane_state == 'answered' then call('HDEL', lane_key(r.lane), 'current') end",
        )
    ),
    "a lease is renewed without comparing the token": Fault(
        {
            "renew": (
                ("if token ~= h[2] then out[i] = 'lost'", "if not token then out[i] = 'lost'"),
                ("h[1], token .. '|'", "h[1], h[2] .. '|'"),
            )
        },
        mix=FROSTY,
        first=30,
    ),
    "freezing does not look whether something stands": Fault(
        _move("m.freeze[2], 'NX')", "m.freeze[2])"),
        python.FROZEN_AGAIN,
        mix={**ROUGH, "platform": 0.8, "kills": 0.04, "leisure": True},
        first=40,
    ),
    "a key is claimed before the next one is checked": Fault(
        _move(
            "if call('MSETNX', unpack(both)) == 1 then",
            """for _, key in ipairs(m.claims) do
    local v = call('GET', key)
    if v and holder_of(v) ~= m.id then return false end
    call('SET', key, m.claim)
  end
  if true then""",
        )
    ),
    "a ticket is given back and the next is not woken": Fault(_move("lane_wake(r.lane, l[1], l[2])", "")),
    "what becomes ready wakes nobody": Fault(
        _move("if m.to == 'parked:lane' and to == m.to then lane_look(r.lane) end", "")
    ),
    "what was handed over runs instead of the lane's head": Fault(
        _everywhere("':ready', 0, 0, 'WITHSCORES')", "':ready', -1, -1, 'WITHSCORES')", "move", "fire")
    ),
    "removal comes before the other effects": Fault(
        _move("for _, e in ipairs(m.effects or {})", "call('ZREM', old, m.id)\n  for _, e in ipairs(m.effects or {})"),
        mix={"spoils": 0.2},
    ),
    "deliveries are counted at starts": Fault(
        _everywhere(
            "call('SET', P .. 'started:' .. o.token",
            "call('HINCRBY', rec(id), 'takeovers', 1)\n      call('SET', P .. 'started:' .. o.token",
            "start",
            "move",
        )
    ),
    "an earlier message is not waited for": Fault(
        _everywhere("if now < until_ms then", "if false then", "move", "fire"), mix={"skew_ms": 0}
    ),
    "the end of a turn leaves the depth": Fault(_move("count(r.account, -1)", "")),
    "a wake-up's flag is never cleared": Fault(
        _everywhere("call('HDEL', P .. 'woken', name)\n  if strays", "if strays", "claim", "move"), mix=SMOOTH
    ),
    "a claim ignores its holder": Fault(
        {"claim": (("if held and holder_of(held) ~= A.token then return {'held'} end", ""),)}, mix=ROUGH
    ),
    "what is due is fired at once": Fault(
        {"fire": (("P .. 'at:due', '-inf', now", "P .. 'at:due', '-inf', '+inf'"),)},
        mix={"platform": 0.8, "skew_ms": 0},
    ),
    "a guest's slot is not given back": Fault(_move("call('HDEL', P .. 'guests', r.guest)", "local _ = 0")),
    "a breaker closes on a late success": Fault(
        _move("or (was[2] and not b.probe) then return end", "then return end"),
        mix={"harness": 0.6, "skew_ms": 0, "turns": 0.0},
    ),
    "a harness has no end of slots": Fault(
        _everywhere("return tonumber((A.slots or {})[harness] or 32)", "return 99", "move", "start", "release", "fire")
    ),
    "an index has no cap": Fault({"index": (("if over > 0", "if false"),)}),
    "a result overwrites sent": Fault(
        _everywhere("if not holding then", "if false then", "ledger", "move"), python.LEASE_LOST_LATE, FROSTY
    ),
    "a late claim is carried out": Fault(
        _everywhere("if LATE_MS == 0 then", "if true then", "start", "hold", "move"),
        mix={"calls": 0.12, "leisure": True},
    ),
    "a replay ignores the guest's slot": Fault(
        {"reopen": (("if (call('HGET', P .. 'guests', r.guest) or A.id) ~= A.id then return 'busy' end", ""),)},
        mix={"replays": 0.05, "harness": 0.6},
    ),
    "what follows a refused one is applied": Fault(
        _move("if blocked[s] then verdict = 'stale' end", "local _ = s"), mix={"spoils": 0.5, "sayings": 0.8}, first=40
    ),
    "quotes are not woken": Fault(
        _move(
            "place == 'judge' or place == 'quotes' or place == 'delivery' then push", "place == 'delivery' then push"
        ),
        mix=SMOOTH,
    ),
    "nobody is quiet after a restart": Fault(patches=python.NEVER_QUIET, mix={"rollbacks": 0.02}),
}
