"""Messages over many conversations, and the question that every chaos run ends with: was anything lost, doubled or
reordered?"""

import random
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.harness import Harness
from tests.integration.world import World
from tests.platforms.callback import Callback, Sent

UNKNOWN = ("effect-unknown", "delivery-unknown")
ALLOWED = frozenset({"answered", *(f"dead:{reason}" for reason in UNKNOWN)})
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


def events(count: int, people: int, rng: random.Random) -> Generator[dict[str, Any]]:
    """Private messages `pN:K`, K counting in each conversation."""
    so_far: Counter[str] = Counter()
    for number in range(count):
        sender = f"p{rng.randrange(people)}"
        so_far[sender] += 1
        yield {"message_id": f"m{number}", "sender": sender, "text": f"{sender}:{so_far[sender]}"}


@dataclass
class Report:
    """What became of a run. The three lists should be empty."""

    accepted: int
    ends: Counter[str]
    lost: list[str] = field(default_factory=list[str])
    doubled: list[str] = field(default_factory=list[str])
    reordered: list[str] = field(default_factory=list[str])

    def line(self, **more: Any) -> str:
        dead = {end: n for end, n in sorted(self.ends.items()) if end != "answered"}
        words = [f"accepted {self.accepted}", f"answered {self.ends['answered']}", f"otherwise {dead}"]
        words += [f"lost {len(self.lost)}", f"doubled {len(self.doubled)}", f"reordered {len(self.reordered)}"]
        return ", ".join([*words, *(f"{k} {v}" for k, v in more.items())])

    def hold(self, allowed: frozenset[str] = ALLOWED) -> None:
        """Fail where something was lost, doubled or reordered, or ended as it may not."""
        assert self.lost == [], f"lost: {self.lost[:10]}"
        assert self.doubled == [], f"doubled: {self.doubled[:10]}"
        assert self.reordered == [], f"reordered: {self.reordered[:10]}"
        assert set(self.ends) <= allowed, self.ends


def examine(world: World, ids: Sequence[str], harness: Harness, callback: Callback, *, frozen: bool = False) -> Report:
    """Read every record, every call and every send, and compare.

    frozen: processes were stopped and woken. One that froze between its last look and the first byte acts late and
    nobody can keep it from that, which is why such a message ends as unknown; its place in the order is unknown too.
    """
    report = Report(len(ids), world.dispositions(ids))
    known = set(ids)
    sends: dict[str, list[Sent]] = {}
    for one in callback.sends:
        sends.setdefault(one.nonce.split("-", 1)[0], []).append(one)  # the outbound id begins with the message's
    for id_ in ids:
        record = world.record(id_)
        if record.get("place") != "ended":
            report.lost.append(f"{id_} at {record.get('place')}: {record.get('log')}")
        replies = sends.get(id_, [])
        if record.get("disposition") == "answered" and not replies:
            report.lost.append(f"{id_} answered, but no reply was seen: {record.get('log')}")
        if len(replies) > 1:
            report.doubled.append(f"{id_} sent {len(replies)} times: {replies}")
        if replies and not harness.calls[id_]:
            report.doubled.append(f"{id_} was answered by nobody")
    report.doubled += [f"turn {key} run {n} times" for key, n in harness.calls.items() if n > 1]
    report.doubled += [f"a reply to the unknown {id_}" for id_ in sends if id_ not in known]
    for what, found in (("turns", harness.calls), ("replies", sends)):
        known_when = [i for i in found if not (frozen and world.record(i).get("reason") in UNKNOWN)]
        report.reordered += _out_of_order(what, known_when, world.tickets(known_when), world)
    return report


def _out_of_order(what: str, ids: Sequence[str], tickets: dict[str, int], world: World) -> list[str]:
    """Where a conversation's later ticket came before an earlier one. `ids` are in the order of their first call."""
    last: dict[str, tuple[int, str]] = {}
    found: list[str] = []
    for id_ in ids:
        lane = world.record(id_).get("lane", "")
        before = last.get(lane, (0, ""))
        if tickets[id_] < before[0]:
            found.append(f"{what}: {id_} ({tickets[id_]}) after {before[1]} ({before[0]}) in {lane}")
        last[lane] = (tickets[id_], id_)
    return found


def conserved(world: World) -> None:
    """Nothing is left anywhere."""
    assert world.left() == {}, world.left()


def every_message(world: World) -> dict[str, list[str]]:
    """All records of messages that the server has, acknowledged or not, by the key under which they were frozen."""
    client, prefix = world.process.client, world.process.keys.record("")
    found: dict[str, list[str]] = {}
    for key in client.scan_iter(f"{prefix}*", count=1000):
        kind, frozen = client.hmget(key, "kind", "fkey")
        if kind == "msg":
            found.setdefault(frozen, []).append(key[len(prefix) :])
    return found
