"""What became of each message, read from what the pipeline leaves: records, conversations' logs, the platform."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from shared.redis.client import Redis
from shared.redis.keys import Keys
from workers.ops.bench.events import number_in
from workers.ops.bench.figures import Trouble
from workers.ops.bench.stack import Ours

FIELDS: Final = ("mid", "place", "disposition", "ticket", "ended_at", "lane")
CLOCKS_MS: Final = 50
"""Two processes read the server's clock this much apart at worst: ends so close to each other tell nothing of an order.
Where a platform sees what was sent, the order is judged by what it saw."""
CHUNK: Final = 5_000
FRESH: Final = "0[1-9A-Z]*"
"""Envelope ids are ULIDs, which begin with their time: this leaves out those before 2004, as `known` makes them."""
ANSWERED: Final = frozenset({"answered"})
UNENDING: Final = frozenset({"", "duplicate"})
"""What is no end of a message itself: none yet, or that of a second copy."""


@dataclass(frozen=True, slots=True)
class Ended:
    """One record of a message. disposition: empty while it has none. ended_at_ms: 0 then."""

    number: int
    ticket: int
    lane: str
    disposition: str
    ended_at_ms: int


def records(client: Redis, keys: Keys, run: str) -> tuple[list[Ended], Counter[str]]:
    """The records of a run's messages, and how many answers of each were begun to be sent, by its record's id: each
    answer has a ledger of its own."""
    found: list[Ended] = []
    sent: Counter[str] = Counter()
    mine: set[str] = set()
    for chunk in _chunks(client.scan_iter(keys.record(FRESH), count=CHUNK)):
        with client.pipeline(transaction=False) as pipe:
            for key in chunk:
                pipe.hmget(key, FIELDS)
            rows: list[list[str | None]] = pipe.execute()
        for key, row in zip(chunk, rows, strict=True):
            read = dict(zip(FIELDS, row, strict=True))
            of_run, _, number = (read["mid"] or "").rpartition("-")
            if of_run == run:
                mine.add(key.rpartition(":")[2])
                word = (read["disposition"] or "") if read["place"] == "ended" else ""
                found.append(
                    Ended(int(number), int(read["ticket"] or 0), read["lane"] or "", word, int(read["ended_at"] or 0))
                )
    for key in client.scan_iter(keys.ledger(FRESH), count=CHUNK):
        id_ = key.rpartition(":")[2].rpartition("-")[0]
        sent[id_] += id_ in mine
    return found, sent


def answered(ours: Ours, run: str, accepted: int, allowed: frozenset[str] = ANSWERED) -> tuple[Trouble, Counter[str]]:
    """The trouble of a run whose messages must end as one of `allowed`, and how they did end."""
    found, sent = records(ours.client, ours.process.keys, run)
    return judged(found, sent, accepted, allowed), Counter(one.disposition for one in found)


def judged(
    found: Sequence[Ended], sent: Mapping[str, int], accepted: int, allowed: frozenset[str] = ANSWERED
) -> Trouble:
    """Pure. `found`: records of a run. `sent`: ledgers by message. `accepted`: how many were acknowledged."""
    ends = Counter(one.number for one in found if one.disposition not in UNENDING)
    lanes: defaultdict[str, list[Ended]] = defaultdict(list)
    for one in found:
        if one.disposition == "answered":
            lanes[one.lane].append(one)
    # Tickets are the order of acceptance.
    reordered = sum(
        before.ended_at_ms > after.ended_at_ms + CLOCKS_MS or before.number > after.number
        for lane in lanes.values()
        for before, after in pairwise(sorted(lane, key=lambda one: one.ticket))
    )
    return Trouble(
        lost=max(accepted - len(ends), 0),
        doubled=sum(n - 1 for n in ends.values() if n > 1) + sum(n - 1 for n in sent.values() if n > 1),
        reordered=reordered,
        dropped=sum(bool(one.disposition) and one.disposition not in allowed for one in found),
    )


def silenced(ours: Ours, run: str, accepted: int) -> Trouble:
    """The trouble of a run of silenced messages: each leaves one row in its conversation's log, in order. A log holds
    200 rows, so a run must have fewer in a conversation."""
    logs = {key: ours.client.lrange(key, 0, -1) for key in ours.client.scan_iter(ours.process.keys.log("*"))}
    return in_order({key: rows[::-1] for key, rows in logs.items()}, run, accepted)


def in_order(said: Mapping[str, Iterable[str]], run: str, accepted: int) -> Trouble:
    """Pure. `said`: by conversation, the texts of a run's messages (and others') in the order in which they came."""
    seen: Counter[int] = Counter()
    reordered = 0
    for texts in said.values():
        numbers = [found[1] for one in texts if (found := number_in(one)) and found[0] == run]
        seen.update(numbers)
        reordered += sum(before > after for before, after in pairwise(numbers))
    doubled = sum(count - 1 for count in seen.values())
    return Trouble(lost=max(accepted - len(seen), 0), doubled=doubled, reordered=reordered)


def at_platform(seen: Sequence[Sequence[Any]], run: str, accepted: int) -> Trouble:
    """Pure. The trouble as the platform sees it: [chat, reply_to, text] of what was sent."""
    chats: defaultdict[str, list[str]] = defaultdict(list)
    for chat, _, said in seen:
        chats[chat].append(said)
    return in_order(chats, run, accepted)


def of_ends(ids: Sequence[str], messages: int, conversations: int) -> Trouble:
    """Pure. A peer's trouble: the numbers of its messages in the order in which they ended."""
    seen = Counter(ids)
    last: dict[int, int] = {}
    reordered = 0
    for id_ in ids:
        number = int(id_)
        reordered += number < last.get(number % conversations, -1)
        last[number % conversations] = number
    return Trouble(lost=messages - len(seen), doubled=len(ids) - len(seen), reordered=reordered)


def _chunks(keys: Iterable[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    for key in keys:
        chunk.append(key)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
