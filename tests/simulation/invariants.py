"""What must hold: after every step (`standing`), at every effect outside (`Books`), and at rest (`at_rest`)."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from shared.harness.port import Turn
from shared.redis.client import Redis
from shared.redis.keys import Keys
from tests.simulation.people import CONCURRENCY, INDEX_MAX
from tests.simulation.strands import Strand

LOG_MAX: Final = 4
"""Rows of a conversation's log here, so that it is soon full."""

LOOK: Final = """
local P, out = ARGV[1], {recs = {}, sets = {}, lanes = {}, frozen = {}, sizes = {}}
for _, key in ipairs(redis.call('KEYS', P .. '*')) do
  local kind, rest = string.match(string.sub(key, #P + 1), '^([^:]+):(.*)$')
  if kind == 'rec' then
    local v = redis.call('HMGET', key, 'place', 'kind', 'part', 'harness', 'lane', 'disposition', 'pending', 'ready_at',
      'ticket', 'takeovers', 'reason', 'guest', 'out', 'account', 'replayed')
    for i = 1, 15 do v[i] = v[i] or '' end
    out.recs[rest] = v
  elseif kind == 'at' then
    out.sets[rest] = redis.call('ZRANGE', key, 0, -1)
  elseif kind == 'lane' then
    if string.find(rest, ':') then out.lanes[rest] = redis.call('ZRANGE', key, 0, -1)
    else
      local v = redis.call('HMGET', key, 'current', 'state')
      for i = 1, 2 do v[i] = v[i] or '' end
      out.lanes[rest] = v
    end
  elseif kind == 'frozen' then
    out.frozen[rest] = redis.sha1hex(redis.call('GET', key))
  elseif kind == 'log' and redis.call('TYPE', key).ok == 'list' then
    out.sizes[kind .. ':' .. rest] = redis.call('LLEN', key)
  elseif kind == 'index' and not string.find(rest, ':') then
    out.sizes[kind .. ':' .. rest] = redis.call('ZCARD', key)
    out.sizes[kind .. ':' .. rest .. ':texts'] = redis.call('HLEN', key .. ':texts') - 1
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
    pending: str
    ready_at: str
    ticket: str
    takeovers: str
    reason: str
    guest: str
    out: str
    account: str
    replayed: str

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
        self.sizes: dict[str, int] = data["sizes"] or {}
        self.depth = int(data["depth"])

    def current(self, lane: str) -> str:
        """A lane's current turn, or ''."""
        return str((self.lanes.get(lane) or [""])[0])


def root_of(id_: str) -> str:
    """The message that an id belongs to: its own, or the one that an outbound record answers."""
    return id_.split("-", 1)[0]


def standing(look: Look) -> None:
    """Conservation, lanes and bounds, as they must be between any two script calls. Raises Broken."""
    for name, size in look.sizes.items():
        most = LOG_MAX if name.startswith("log:") else INDEX_MAX
        demand(size <= most, "logs and indexes keep within their bounds", (name, size))
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
    running = look.sets.get("running:default", [])
    demand(len(running) <= CONCURRENCY, "a harness has no more turns than slots", running)
    live = [(id_, rec) for id_, rec in look.recs.items() if rec.kind == "msg" and rec.place != "ended"]
    demand(look.depth == len(live), "the depth is the number of live messages", (look.depth, len(live)))
    for lane in {rec.lane for rec in look.recs.values() if rec.lane}:
        _lane(look, lane, {id_: rec for id_, rec in live if rec.lane == lane})


def _lane(look: Look, lane: str, live: Mapping[str, Rec]) -> None:
    current = look.current(lane)
    demand(not current or current in live, "a lane's current turn is alive", (lane, current))
    # A failed send that an operator replays re-enters delivery only: its lane went on long ago.
    under_way = {id_ for id_, rec in live.items() if rec.ready_at and rec.place != "parked:lane"}
    active = {id_ for id_ in under_way if id_ == current or not live[id_].replayed}
    demand(len(active) <= 1, "at most one turn of a lane is current", (lane, active))
    demand(not active or active == {current}, "what runs is the lane's current turn", (lane, active, current))
    pending = set(look.lanes.get(f"{lane}:pending") or [])
    early = {id_ for id_, rec in live.items() if rec.pending and not rec.ready_at}
    demand(pending == early, "pending are those that are not ready", (lane, pending, early))
    ready = set(look.lanes.get(f"{lane}:ready") or [])
    frozen = {id_ for id_, rec in live.items() if rec.place == "parked:lane"}
    demand(ready == frozen, "ready are those that are frozen and have not started", (lane, ready, frozen))


@dataclass
class Books:
    """What really happened outside, counted where it happened.

    skew_ms: by how much two processes' clocks may differ. ask_again, send_again: how often a turn may be asked, or a
    message's parts sent, once more, because an operator wished it or the server forgot the first time. forgot: messages
    of which the server lost something. excused: those, and those that an operator had done again: their records may
    know less than happened. doubled: what was done twice because the server forgot.
    """

    client: Redis
    keys: Keys
    idempotent: bool
    asks: Counter[str] = field(default_factory=Counter[str])
    sends: Counter[tuple[str, int]] = field(default_factory=Counter[tuple[str, int]])
    prompts: dict[str, str] = field(default_factory=dict[str, str])
    frozen: dict[str, str] = field(default_factory=dict[str, str])
    takeovers: Counter[str] = field(default_factory=Counter[str])
    at_work: dict[Strand, str] = field(default_factory=dict[Strand, str])
    sealed: dict[Strand, bool] = field(default_factory=dict[Strand, bool])
    sending: dict[Strand, str] = field(default_factory=dict[Strand, str])
    intents: dict[Strand, tuple[str, int]] = field(default_factory=dict[Strand, tuple[str, int]])
    waits: dict[str, int] = field(default_factory=dict[str, int])
    lookups: Counter[str] = field(default_factory=Counter[str])
    ask_again: Counter[str] = field(default_factory=Counter[str])
    send_again: Counter[str] = field(default_factory=Counter[str])
    wishes: dict[str, bool] = field(default_factory=dict[str, bool])
    forgot: set[str] = field(default_factory=set[str])
    excused: set[str] = field(default_factory=set[str])
    skew_ms: int = 0
    doubled: int = 0

    def ask(self, turn: Turn, took: bool) -> None:
        """A request to the harness. Raises Broken."""
        said = self.prompts.setdefault(turn.id, turn.prompt)
        same = said == turn.prompt or turn.id in self.excused
        demand(same, "a turn is asked the same every time", turn.id)
        self.asks[turn.id] += took
        most = 1 + self.ask_again[turn.id]
        demand(self.idempotent or self.asks[turn.id] <= most, "one call a turn", (turn.id, self.asks[turn.id]))
        self.doubled += took and self.asks[turn.id] > 1 and turn.id in self.forgot

    def intend(self, strand: Strand, out: str, part: int, switches: Mapping[str, str]) -> None:
        """A strand may send a part; `switches` are as it saw them, and as they still are. Raises Broken."""
        self.intents[strand] = out, part
        demand(switches.get("paused") != "1", "nothing is sent while paused", out)
        self.sealed[strand] = switches.get("read_only") == "1"

    def send(self, strand: Strand, channel: str, took: bool, now_ms: int) -> None:
        """A request to a platform. Raises Broken."""
        demand(strand in self.intents, "an intent before the send", strand.name)
        out, part = self.intents.pop(strand)
        forgot = root_of(out) in self.forgot  # it was told yes, and then perhaps the server forgot that
        state = str(self.client.hget(self.keys.ledger(out), str(part)) or "")
        demand(forgot or state.startswith("intent|"), "an intent before the send", (out, part, state))
        # Who took it over was not told what its platform had asked for.
        known = root_of(out) not in self.excused and not self.takeovers[root_of(out)] and not self.takeovers[out]
        early = known and now_ms < self.waits.get(out, 0) - self.skew_ms
        demand(not early, "a platform that asked for time gets it", out)
        demand(self.sends[out, part] <= self.send_again[root_of(out)], "one send a part", (out, part))
        self.sends[out, part] += took
        self.sending[strand] = out
        self.doubled += took and self.sends[out, part] > 1 and forgot
        demand(channel == "mock" or not self.sealed[strand], "nothing is sent in read-only", out)

    def look_up(self, strand: Strand, gentle: bool) -> None:
        """A platform is asked for what a message quotes. Raises Broken."""
        id_ = self.at_work[strand]
        self.lookups[id_] += 1
        demand(not gentle or self.lookups[id_] == 1, "one lookup a message", id_)

    def reopened(self, id_: str, to: str) -> None:
        """An operator's replay: what follows counts afresh."""
        if to == "delivery":
            self.send_again[id_] += 1
        else:
            self.ask_again[id_] += 1
        self.takeovers.pop(id_, None)
        if self.wishes.get(id_):
            self.excused.add(id_)

    def told_to_wait(self, strand: Strand, until_ms: int) -> None:
        """A platform asked to be left alone until then."""
        self.waits[self.sending[strand]] = until_ms

    def started(self, id_: str, now_ms: int, order_wait_ms: int) -> None:
        """A turn starts for the first time. Raises Broken when it passes somebody who had not yet to be passed."""
        look = Look(self.client, self.keys.prefix)
        mine = look.recs[id_]
        for other, rec in look.recs.items():
            if rec.lane != mine.lane or rec.place == "ended" or other == id_ or int(rec.ticket) > int(mine.ticket):
                continue
            if rec.replayed and rec.ready_at and rec.place != "parked:lane":
                continue  # only its delivery is done again: it is in no lane
            demand(not rec.ready_at, "nothing frozen is passed over", (id_, other, rec.place))
            waited = now_ms - int(mine.ready_at)
            demand(
                waited >= order_wait_ms - self.skew_ms, "an earlier one is waited for", (id_, other, rec.place, waited)
            )

    def forgotten(self, touched: set[str], look: Look) -> None:
        """The server lost what it had last done to `touched`; `look` is what it knows now."""
        roots = {root_of(id_) for id_ in touched}
        self.excused |= roots
        self.forgot |= roots
        self.ask_again.update(roots)
        self.send_again.update(roots)
        self.frozen = dict(look.frozen)

    def compare(self, look: Look) -> None:
        """Frozen bytes never change, and takeovers alone are counted. Raises Broken."""
        for id_, rec in look.recs.items():
            real = int(rec.takeovers or 0) <= self.takeovers[id_] or root_of(id_) in self.forgot
            demand(real, "a takeover is counted when one happens", (id_, rec.takeovers, self.takeovers[id_]))
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
        if rec.reason == "crash-loop" and root_of(id_) not in books.forgot:
            demand(books.takeovers[id_] >= 6, "no crash-loop without six takeovers", (id_, books.takeovers[id_]))
    sent: dict[str, set[int]] = {}
    for (out, part), count in books.sends.items():
        if count:
            sent.setdefault(out, set()).add(part)
    for out, numbers in sent.items():
        ledger: dict[str, str] = books.client.hgetall(books.keys.ledger(out))
        states = {int(part): value.split("|", 1)[0] for part, value in ledger.items()}
        for part in numbers if root_of(out) not in books.excused else ():
            demand(states.get(part) != "not-sent", "what was sent is not written down as not sent", (out, states))
    for id_, rec in look.recs.items():
        if rec.kind != "msg" or id_ in books.excused:
            continue
        some = sent.get(rec.out, set())
        if rec.disposition == "answered" and rec.reason != "empty":
            demand(some == set(range(parts[id_])), "what is answered was sent whole", id_)
        elif rec.disposition == "dead" and rec.reason != "delivery-unknown" and rec.out:
            demand(len(some) < parts[id_], "what was sent whole did not end as refused", (id_, rec.reason))
        elif rec.disposition in ("skipped", "denied", "cancelled", "throttled", "silenced") and rec.out:
            demand(len(some) < parts[id_], "what was sent did not end as not sent", (id_, rec.disposition))
