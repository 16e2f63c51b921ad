"""The referee: hears every script as it happens, keeps the reference gate going, and holds each decision against it."""

import copy
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from shared.envelope import Envelope
from shared.message import Message
from tests.simulation.claims import Claims
from tests.simulation.invariants import Look, demand
from tests.simulation.people import ACCOUNTS, LANE_MAX
from tests.simulation.reference import End, Gate, run_of

UNJUDGED: Final = frozenset({"crash-loop", "move-failed"})
"""Ends that no rule of the gate knows: workers died, or the server could not do what it was told."""


class Referee:
    """One world's. Its times are numbers of script calls."""

    def __init__(self) -> None:
        self._gate = Gate({str(a["id"]): a for a in ACCOUNTS}, LANE_MAX)
        self._claims = Claims()
        self._known: dict[str, tuple[Message, int, str]] = {}
        self._done: set[tuple[str, int]] = set()
        self._why: dict[str, str] = {}
        self._claimed: dict[str, tuple[str, int]] = {}
        self._freed: list[tuple[int, str, Any]] = []
        self._failed: set[str] = set()
        self._now = 0
        self._restored = 0
        self.decided: Counter[End] = Counter()

    def accepted(self, items: list[Mapping[str, Any]]) -> None:
        """Messages were taken in."""
        for item in items:
            envelope = Envelope.from_json(item["env"])
            self._known[item["id"]] = (envelope.message, envelope.received_at_ms, item["lane"])

    def told(self, script: str, argument: Mapping[str, Any], answer: Any, now_ms: int, read_only: set[bool]) -> None:
        """A script was carried out at `now_ms` of the server. `read_only`: as the caller's process had the switch since
        its claim. Raises Broken."""
        self._now += 1
        match script:
            case "claim" if answer[0] == "ok":
                self._claimed[f"{argument['stage']}:{argument['part']}"] = (argument["token"], self._now)
            case "takeover":
                self._claimed[argument["name"]] = (argument["token"], self._now)
            case "start" if answer[0] == "ok":
                self._left(answer[1])
            case "reopen" if answer == "ok":
                self._reopened(argument["id"], argument["to"])
            case "move" if answer != ["lost"]:
                for move, verdict in zip(argument["moves"], answer, strict=True):
                    if verdict == "ok" and (move["id"], move["step"]) not in self._done:
                        self._done.add((move["id"], move["step"]))
                        self._claims.moved(argument, move)
                        self._moved(argument["holder"], argument["token"], move, read_only)
                    elif verdict.startswith("failed"):
                        self._failed.add(move["id"])
            case _:
                pass
        self._claims.told(script, argument, answer, now_ms)

    def stopped(self, ended: set[str]) -> None:
        """A /stop may have ended a turn in another message's move; `ended` are all that have ended."""
        for id_ in ended & set(self._gate.slots.values()):
            self._ended(id_)

    def snapshot(self) -> Any:
        """A copy of what it remembers, for a server that will lose what follows."""
        return copy.deepcopy((self._gate, self._done, self._why)), self._claims.snapshot()

    def restore(self, kept: Any) -> None:
        """The server is back at an earlier moment. What is decided by batches that began before is not judged."""
        mine, claims = kept
        self._gate, self._done, self._why = copy.deepcopy(mine)
        self._claims.restore(claims)
        self._now += 1
        self._restored = self._now

    def at_rest(self, look: Look, excused: set[str]) -> None:
        """What the gate said is what the record says. Raises Broken."""
        for id_, rec in look.recs.items():
            if rec.disposition == "answered" and rec.kind == "msg" and rec.reason != "empty" and id_ not in excused:
                demand(
                    rec.reason == self._why.get(id_), "an answered message carries the gate's reason", (id_, rec.reason)
                )
            if rec.reason == "move-failed":
                demand(id_ in self._failed, "no move fails by itself", id_)

    def _moved(self, holder: str, token: str, move: Mapping[str, Any], read_only: set[bool]) -> None:
        id_, stage = move["id"], holder.split(":", 1)[0]
        if id_ not in self._known:
            return
        message, at_ms, lane = self._known[id_]
        claim, since = self._claimed.get(holder, ("", 0))
        judged = claim == token and since > self._restored
        end: End = (move["end"][0], move["end"][1]) if "end" in move else ("on", "")
        if stage == "admission":
            if judged and end[1] not in UNJUDGED:
                back = self._since(since, "bot", run_of(message))
                right = [self._gate.admission(id_, message, at_ms, on, back) for on in read_only or {False}]
                self._hold(id_, end, set().union(*right))
            self._gate.admitted(id_, message, end)
        elif stage == "engagement":
            if end[0] == "on":
                end = ("on", move["fields"]["why"])
                self._why[id_] = end[1]
            if judged and end[1] not in UNJUDGED:
                freed = (
                    self._since(since, "lane", lane),
                    self._since(since, "slot", (message.account, message.sender_id)) > 0,
                )
                self._hold(id_, end, self._gate.engagement(id_, message, at_ms, lane, freed))
            self._gate.engaged(id_, message, at_ms, lane, end)
            if end[0] != "on" and message.sender_is_bot:
                self._freed.append((self._now, "bot", run_of(message)))
        if "end" in move:
            self._ended(id_)

    def _hold(self, id_: str, end: End, right: set[End]) -> None:
        self.decided[end] += 1
        demand(end in right, "a decision equals the reference model's", (id_, end, "not in", sorted(right)))

    def _since(self, since: int, kind: str, name: Any) -> int:
        return sum(1 for at, k, n in self._freed if at >= since and k == kind and n == name)

    def _left(self, id_: str) -> None:
        """It waits in its lane no longer."""
        _, _, lane = self._known[id_]
        if id_ in self._gate.waiting[lane]:
            self._gate.waiting[lane].discard(id_)
            self._freed.append((self._now, "lane", lane))

    def _ended(self, id_: str) -> None:
        message, _, _ = self._known[id_]
        self._left(id_)
        slot = (message.account, message.sender_id)
        if self._gate.slots.get(slot) == id_:
            del self._gate.slots[slot]
            self._freed.append((self._now, "slot", slot))

    def _reopened(self, id_: str, to: str) -> None:
        """An operator gave it back to the stage `to`. Raises Broken when that was more than its lane or slot has."""
        message, _, lane = self._known[id_]
        if to not in ("quotes", "dispatch"):
            return
        demand(len(self._gate.waiting[lane]) < LANE_MAX, "a replay finds room in its lane", id_)
        self._gate.waiting[lane].add(id_)
        if self._gate.role(message) == "guest":
            slot = (message.account, message.sender_id)
            demand(self._gate.slots.get(slot, id_) == id_, "a replay finds its guest's slot free", id_)
            self._gate.slots[slot] = id_
