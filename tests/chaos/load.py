"""The question that every chaos run ends with: was anything lost, doubled or reordered?"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.chaos.harness import Chat, Harness
from tests.integration.world import World
from tests.platforms.callback import Callback, Sent

UNKNOWN = ("effect-unknown", "delivery-unknown")
ANSWERED = frozenset({"answered"})
ALLOWED = frozenset({*ANSWERED, *(f"dead:{reason}" for reason in UNKNOWN)})
"""How a message may end when processes are killed and the harness is not idempotent (design, section 4)."""


def tables(harness: Harness, callback: Callback, people: int, **account: Any) -> dict[str, Any]:
    """One mock account whose members are `people`, one HTTP harness that is not idempotent."""
    return {
        "harness": {"kind": "http", "url": f"{harness.url}/turns", "failure_notice": "", "timeout_s": 30},
        "notices": {"queued": ""},
        "pipeline": {"lane_max": 1000},
        "accounts": [
            {
                "id": "demo",
                "channel": "mock",
                "self_id": "bot",
                "members": [f"p{n}" for n in range(people)],
                "direct_per_minute": 0,
                "ack": "none",
                "join_s": 0,
                "credentials": {"callback_url": f"{callback.url}/sends"},
                **account,
            }
        ],
    }


class Incident(NamedTuple):
    """What must not be: the envelope or event that it is about, what is wrong, and when the first of what there should
    be once was done, by the monotonic clock (0: it does not matter)."""

    id: str
    what: str
    at_s: float = 0.0


@dataclass
class Report:
    """What became of a run. The three lists should be empty."""

    ends: Counter[str]
    lost: list[Incident] = field(default_factory=list[Incident])
    doubled: list[Incident] = field(default_factory=list[Incident])
    reordered: list[Incident] = field(default_factory=list[Incident])

    def hold(self, allowed: Collection[str] = ALLOWED) -> None:
        """Fail where something was lost, doubled or reordered, or ended as it may not."""
        assert self.lost == [], f"lost: {self.lost[:10]}"
        assert self.doubled == [], f"doubled: {self.doubled[:10]}"
        assert self.reordered == [], f"reordered: {self.reordered[:10]}"
        assert set(self.ends) <= set(allowed), self.ends


def examine(world: World, ids: Sequence[str], harness: Harness, chat: Chat, *, frozen: bool = False) -> Report:
    """Read every record, every call and every send, and compare.

    frozen: processes were stopped and woken. One that froze between its last look and the first byte acts late and
    nobody can keep it from that, which is why such a message ends as unknown; its place in the order is unknown too.
    """
    report = Report(world.dispositions(ids))
    known = set(ids)
    sends: dict[str, list[Sent]] = {}
    first_s: dict[str, float] = {}
    for one in chat.sends:
        id_ = one.nonce.split("-", 1)[0]  # the outbound id begins with the message's
        sends.setdefault(id_, []).append(one)
        first_s.setdefault(id_, chat.first_s[one.nonce])
    for id_ in ids:
        record = world.record(id_)
        if record.get("place") != "ended":
            report.lost.append(Incident(id_, f"at {record.get('place')}: {record.get('log')}"))
        replies = sends.get(id_, [])
        if record.get("disposition") == "answered" and not replies:
            report.lost.append(Incident(id_, f"answered, but no reply was seen: {record.get('log')}"))
        if len(replies) > 1:
            report.doubled.append(Incident(id_, f"sent {len(replies)} times: {replies}", first_s[id_]))
        if replies and not harness.calls[id_]:
            report.doubled.append(Incident(id_, "was answered by nobody"))
    report.doubled += [
        Incident(key, f"turn run {n} times", harness.first_s[key]) for key, n in harness.calls.items() if n > 1
    ]
    report.doubled += [Incident(id_, "a reply to what is not known", first_s[id_]) for id_ in sends if id_ not in known]
    for what, found in (("turns", harness.calls), ("replies", sends)):
        known_when = [i for i in found if not (frozen and world.record(i).get("reason") in UNKNOWN)]
        report.reordered += _out_of_order(what, known_when, world.tickets(known_when), world)
    return report


def _out_of_order(what: str, ids: Sequence[str], tickets: dict[str, int], world: World) -> list[Incident]:
    """Where a conversation's later ticket came before an earlier one. `ids` are in the order of their first call."""
    last: dict[str, tuple[int, str]] = {}
    found: list[Incident] = []
    for id_ in ids:
        if id_ not in tickets:
            continue  # the server has lost it: told elsewhere
        lane = world.record(id_).get("lane", "")
        before = last.get(lane, (0, ""))
        if tickets[id_] < before[0]:
            found.append(Incident(id_, f"{what}: {tickets[id_]} after {before[1]} ({before[0]}) in {lane}"))
        last[lane] = (tickets[id_], id_)
    return found


def conserved(world: World) -> None:
    """Nothing is left anywhere."""
    assert world.left() == {}, world.left()


def every_message(world: World) -> dict[str, list[str]]:
    """The ids of all messages that the server has, acknowledged or not, by the platform's id of the message."""
    client, prefix = world.process.client, world.process.keys.record("")
    found: dict[str, list[str]] = {}
    for key in client.scan_iter(f"{prefix}*", count=1000):
        kind, event = client.hmget(key, "kind", "mid")
        if kind == "msg":
            found.setdefault(event, []).append(key[len(prefix) :])
    return found
