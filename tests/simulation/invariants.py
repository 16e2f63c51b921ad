"""What must hold: after every step (`standing`), at every effect outside (`Books`), and at rest (`at_rest`)."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from shared.harness.port import Turn
from shared.redis.client import Redis
from shared.redis.keys import Keys
from tests.simulation.strands import Strand

LOOK: Final = """
local P, out = ARGV[1], {recs = {}, sets = {}, lanes = {}, frozen = {}}
for _, key in ipairs(redis.call('KEYS', P .. '*')) do
  local kind, rest = string.match(string.sub(key, #P + 1), '^([^:]+):(.*)$')
  if kind == 'rec' then
    local v = redis.call('HMGET', key, 'place', 'kind', 'part', 'harness', 'lane', 'disposition', 'turn', 'ready_at',
      'ticket', 'takeovers', 'reason', 'guest', 'parent', 'account')
    for i = 1, 14 do v[i] = v[i] or '' end
    out.recs[rest] = v
  elseif kind == 'at' then
    out.sets[rest] = redis.call('ZRANGE', key, 0, -1)
  elseif kind == 'lane' then
    if string.find(rest, ':') then out.lanes[rest] = redis.call('ZRANGE', key, 0, -1)
    else
      local v = redis.call('HMGET', key, 'current', 'waiting', 'queued', 'state')
      for i = 1, 4 do v[i] = v[i] or '' end
      out.lanes[rest] = v
    end
  elseif kind == 'frozen' then
    out.frozen[rest] = redis.sha1hex(redis.call('GET', key))
  end
end
out.depth = redis.call('HGET', P .. 'depth', '*') or '0'
return cjson.encode(out)
"""
"""One look at everything, at one moment."""


class Broken(Exception):
    """An invariant does not hold."""


@dataclass(frozen=True, slots=True)
class Rec:
    """A record's fields that the invariants speak of."""

    place: str
    kind: str
    part: str
    harness: str
    lane: str
    disposition: str
    turn: str
    ready_at: str
    ticket: str
    takeovers: str
    reason: str
    guest: str
    parent: str
    account: str

    def set_name(self) -> str:
        """The set that must hold it."""
        match self.place:
            case "admission" | "engagement":
                return f"{self.place}:{self.part}"
            case "dispatch" | "running":
                return f"{self.place}:{self.harness}"
            case _:
                return self.place


def demand(holds: object, invariant: str, told: object = "") -> None:
    """Raises Broken."""
    if not holds:
        raise Broken(f"{invariant}: {told}")


class Look:
    """Everything that the server knows at one moment."""

    def __init__(self, client: Redis, prefix: str) -> None:
        data: dict[str, Any] = json.loads(client.eval(LOOK, 0, prefix))
        self.recs = {id_: Rec(*fields) for id_, fields in data["recs"].items()}
        self.sets: dict[str, list[str]] = {name: list(ids) for name, ids in data["sets"].items()}
        self.lanes: dict[str, Any] = data["lanes"] or {}
        self.frozen: dict[str, str] = data["frozen"] or {}
        self.depth = int(data["depth"])

    def lane(self, name: str) -> tuple[str, int, str]:
        """Current turn, turns waiting, queued head."""
        current, waiting, queued, _ = self.lanes.get(name) or ("", "0", "", "")
        return current, int(waiting or 0), queued


def standing(look: Look) -> None:
    """Conservation and lanes, as they must be between any two script calls. Raises Broken."""
    where: dict[str, list[str]] = {}
    for name, ids in look.sets.items():
        for id_ in ids:
            where.setdefault(id_, []).append(name)
    for id_, rec in look.recs.items():
        found = where.pop(id_, [])
        if rec.place == "ended":
            demand(rec.disposition, "ended without a disposition", id_)
            demand(not found, "ended, and yet in a place", (id_, found))
        else:
            demand(found == [rec.set_name()], "in exactly the place that the record names", (id_, rec.place, found))
            demand(not rec.disposition, "a disposition before the end", (id_, rec.place, rec.disposition))
    demand(not where, "a place holds an id without a record", where)
    live = [(id_, rec) for id_, rec in look.recs.items() if rec.kind == "msg" and rec.place != "ended"]
    demand(look.depth == len(live), "the depth is the number of live messages", (look.depth, len(live)))
    waiting = Counter(rec.lane for _, rec in live if rec.turn)
    for lane in {rec.lane for rec in look.recs.values() if rec.lane}:
        current, counted, _ = look.lane(lane)
        demand(counted == waiting[lane], "a lane counts its waiting turns", (lane, counted, waiting[lane]))
        active = {id_ for id_, rec in live if rec.lane == lane and rec.place in ("running", "parked:outbound")}
        demand(len(active) <= 1, "at most one turn of a lane is current", (lane, active))
        demand(not active or active == {current}, "what runs is the lane's current turn", (lane, active, current))
        if current:
            rec = look.recs.get(current)
            demand(rec is not None and rec.place != "ended", "a lane's current turn is alive", (lane, current))
        pending = set(look.lanes.get(f"{lane}:pending") or [])
        early = {id_ for id_, rec in live if rec.lane == lane and not rec.ready_at}
        demand(pending == early, "pending are those that are not ready", (lane, pending, early))
        ready = set(look.lanes.get(f"{lane}:ready") or [])
        frozen = {id_ for id_, rec in live if rec.lane == lane and rec.ready_at and rec.turn}
        demand(ready == frozen, "ready are those that are frozen and have not started", (lane, ready, frozen))


@dataclass
class Switch:
    """What a strand has read of the switches since it last sent something."""

    paused: bool = False
    read_only: bool = False
    looks: int = 0


@dataclass
class Books:
    """What really happened outside, counted where it happened."""

    client: Redis
    keys: Keys
    idempotent: bool
    asks: Counter[str] = field(default_factory=Counter[str])
    sends: Counter[tuple[str, int]] = field(default_factory=Counter[tuple[str, int]])
    prompts: dict[str, str] = field(default_factory=dict[str, str])
    frozen: dict[str, str] = field(default_factory=dict[str, str])
    takeovers: Counter[str] = field(default_factory=Counter[str])
    switches: dict[Strand, Switch] = field(default_factory=dict[Strand, Switch])

    def ask(self, turn: Turn, took: bool) -> None:
        """A request to the harness. Raises Broken."""
        said = self.prompts.setdefault(turn.id, turn.prompt)
        demand(said == turn.prompt, "a turn is asked the same every time", turn.id)
        self.asks[turn.id] += took
        demand(self.idempotent or self.asks[turn.id] <= 1, "one call a turn", (turn.id, self.asks[turn.id]))

    def send(self, strand: Strand, channel: str, took: bool) -> None:
        """A request to a platform. Raises Broken."""
        out = strand.name.split(" ", 1)[1]
        ledger: dict[str, str] = self.client.hgetall(self.keys.ledger(out))
        begun = [int(part) for part, value in ledger.items() if value.startswith("intent|")]
        demand(len(begun) <= 1, "one part at a time", (out, ledger))
        demand(begun, "an intent before the send", (out, ledger))
        part = begun[0]
        demand(self.sends[out, part] == 0, "one send a part", (out, part))
        self.sends[out, part] += took
        seen = self.switches.pop(strand, Switch())
        demand(seen.looks, "the switches are read before each part", out)
        demand(not seen.paused, "nothing is sent while paused", out)
        demand(channel == "mock" or not seen.read_only, "nothing is sent in read-only", out)

    def looked(self, strand: Strand, raw: dict[str, str]) -> None:
        """The switches were read."""
        seen = self.switches.setdefault(strand, Switch())
        seen.looks += 1
        seen.paused = seen.paused or raw.get("paused") == "1"
        seen.read_only = seen.read_only or raw.get("read_only") == "1"

    def started(self, id_: str, now_ms: int, order_wait_ms: int) -> None:
        """A turn starts for the first time. Raises Broken when it passes somebody who had not yet to be passed."""
        look = Look(self.client, self.keys.prefix)
        mine = look.recs[id_]
        for other, rec in look.recs.items():
            if rec.lane != mine.lane or rec.place == "ended" or other == id_ or int(rec.ticket) > int(mine.ticket):
                continue
            demand(not rec.ready_at, "nothing frozen is passed over", (id_, other, rec.place))
            waited = now_ms - int(mine.ready_at)
            demand(waited >= order_wait_ms, "an earlier one is waited for", (id_, other, rec.place, waited))

    def freeze(self, look: Look) -> None:
        """Frozen bytes never change. Raises Broken."""
        for key, digest in look.frozen.items():
            demand(self.frozen.setdefault(key, digest) == digest, "frozen bytes never change", key)


def at_rest(look: Look, books: Books, held: dict[str, str], accepted: set[str], parts: Mapping[str, int]) -> None:
    """What must hold once the faults stopped and time passed. `parts`: of each turn's answer. Raises Broken."""
    alive = {id_: rec.place for id_, rec in look.recs.items() if rec.place != "ended"}
    demand(not alive, "everything has ended", alive)
    demand(accepted <= set(look.recs), "every accepted message has its record", accepted - set(look.recs))
    lanes = {name: state for name, state in look.lanes.items() if any(state)}
    demand(not lanes, "no lane waits", lanes)
    demand(set(held) <= {"keeper"}, "nothing is held but by the keeper", held)
    for id_, rec in look.recs.items():
        if rec.reason == "crash-loop":
            demand(books.takeovers[id_] >= 6, "no crash-loop without six takeovers", (id_, books.takeovers[id_]))
        demand(rec.reason != "move-failed", "no move fails", id_)
    sent: dict[str, set[int]] = {}
    for (out, part), count in books.sends.items():
        if count:
            sent.setdefault(out, set()).add(part)
    for out, numbers in sent.items():
        ledger: dict[str, str] = books.client.hgetall(books.keys.ledger(out))
        states = {int(part): value.split("|", 1)[0] for part, value in ledger.items()}
        for part in numbers:
            demand(states.get(part) != "not-sent", "what was sent is not written down as not sent", (out, states))
    parents = {id_: [o for o, rec in look.recs.items() if rec.parent == id_] for id_ in look.recs}
    for id_, rec in look.recs.items():
        if rec.kind != "msg":
            continue
        demand(len(parents[id_]) <= 1, "one answer a turn", parents[id_])
        if rec.disposition == "answered" and rec.reason != "empty":
            whole = set(range(parts[id_]))
            demand(parents[id_] and sent.get(parents[id_][0]) == whole, "what is answered was sent whole", id_)
        elif rec.disposition == "dead" and rec.reason != "delivery-unknown" and parents[id_]:
            some = sent.get(parents[id_][0], set())
            demand(len(some) < parts[id_], "what was sent whole did not end as refused", (id_, rec.reason))
        elif rec.disposition in ("skipped", "denied", "cancelled", "throttled", "silenced"):
            some = [o for o in parents[id_] if len(sent.get(o, ())) == parts[id_]]  # a later part may be forbidden
            demand(not some, "what was sent did not end as not sent", (id_, rec.disposition, some))
