"""What became of messages: read from records, decision rows and the streams of silenced ones; never their text."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import Any, Final

from shared.message import short_hash
from workers.context import Context

SCAN_MOST: Final = 200_000
"""Records that a search for a bare platform id looks at: a few seconds on a server nearby."""
BLOCK: Final = 500
"""Records read in one round trip."""


@dataclass(frozen=True, slots=True)
class Story:
    """One envelope. `place` is where it is now, or `ended`. Times: Unix ms. `parts`: part number to ledger state."""

    id: str
    account: str
    channel: str
    place: str
    received_at: int
    disposition: str = ""
    reason: str = ""
    stage: str = ""
    attempt: int = 0
    takeovers: int = 0
    decisions: tuple[dict[str, Any], ...] = ()
    parts: dict[str, str] = field(default_factory=dict[str, str])


def in_order(rows: Sequence[dict[str, Any]], sent: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """A record's decisions in the order in which they were written, and among them what was sent, by time.

    Their own times do not order them: stages run in processes whose clocks differ by milliseconds.
    """
    latest = list(accumulate((row["at"] for row in rows), max))
    timed = [*zip(latest, rows, strict=True), *((row["at"], row) for row in sent)]
    return [row for _, row in sorted(timed, key=lambda pair: pair[0])]


def by_id(ctx: Context, id_: str) -> Story | None:
    """The story of an envelope id, or None when nothing of it is kept."""
    record: dict[str, str] = ctx.client.hgetall(ctx.keys.record(id_))
    silent = {} if record and record.get("log") else _silenced(ctx, id_, record.get("account"))
    if not record and not silent:
        return None
    rows = [json.loads(line) for line in (record.get("log") or silent.get("log", "")).splitlines()]
    out = record.get("out", "")
    decisions = in_order(rows, _outbound(ctx, out))
    last = decisions[-1] if decisions else {}
    return Story(
        id=id_,
        account=record.get("account") or silent.get("account", ""),
        channel=record.get("channel", ""),
        place=record.get("place", "ended"),
        received_at=int(record.get("at", 0)),
        disposition=record.get("disposition") or ("" if record else last.get("outcome", "")),
        reason=record.get("reason") or ("" if record else last.get("reason", "")),
        stage=record.get("stage") or ("" if record else last.get("stage", "")),
        attempt=int(record.get("attempt", 0)),
        takeovers=int(record.get("takeovers", 0)),
        decisions=tuple(decisions),
        parts={part: value.split("|", 1)[0] for part, value in sorted(_ledger(ctx, out).items())},
    )


def by_key(ctx: Context, account: str, key: str) -> list[Story]:
    """The stories of all envelopes of one stable key (`CHAT:MESSAGE` on every built channel), duplicates among them."""
    claim: str = ctx.client.get(ctx.keys.claim(account, key)) or ""
    holder = claim.split("|", 1)[0]
    wanted = {short_hash(account, key), ctx.client.hget(ctx.keys.record(holder), "fkey") if holder else None}
    ids = [row["id"] for _, row in ctx.client.xrange(ctx.keys.silent(account))]
    found = {holder} if holder else set[str]()
    for id_, fkey in zip(ids, _fields(ctx, ids, "fkey"), strict=True):
        if fkey in wanted - {None}:
            found.add(id_)
    return _told(ctx, found)


def by_message_id(ctx: Context, accounts: list[str], message_id: str) -> list[Story]:
    """The stories of a platform's message id whose chat is not known: found by looking through what is kept."""
    found: set[str] = set()
    records = ctx.client.scan_iter(match=ctx.keys.record("*"), count=BLOCK)
    prefix = len(ctx.keys.record(""))
    for block in _blocks(islice(records, SCAN_MOST)):
        ids = [key[prefix:] for key in block]
        with ctx.client.pipeline(transaction=False) as pipe:
            for id_ in ids:
                pipe.hmget(ctx.keys.record(id_), "kind", "account", "mid")
            rows = pipe.execute()
        for id_, (kind, account, mid) in zip(ids, rows, strict=True):
            if kind == "msg" and account in accounts and mid == message_id:
                found.add(id_)
    return _told(ctx, found | _same_key(ctx, found))


def _same_key(ctx: Context, ids: set[str]) -> set[str]:
    """Further envelopes of the same keys: duplicates keep nothing but their first key's hash."""
    fkeys = {fkey for fkey in _fields(ctx, list(ids), "fkey") if fkey}
    found: set[str] = set()
    for account in {name for name in _fields(ctx, list(ids), "account") if name}:
        silenced = [row["id"] for _, row in ctx.client.xrange(ctx.keys.silent(account))]
        found |= {i for i, fkey in zip(silenced, _fields(ctx, silenced, "fkey"), strict=True) if fkey in fkeys}
    return found


def _told(ctx: Context, ids: set[str]) -> list[Story]:
    stories = [story for id_ in sorted(ids) if (story := by_id(ctx, id_)) is not None]
    return sorted(stories, key=lambda story: (story.received_at, story.id))


def _silenced(ctx: Context, id_: str, account: str | None) -> dict[str, str]:
    """The row of a message that ended in silence; looked for in every account's stream when its record is gone."""
    for name in [account] if account else [one.id for one in ctx.settings.accounts]:
        for _, row in ctx.client.xrevrange(ctx.keys.silent(name)):
            if row["id"] == id_:
                return {**row, "account": name}
    return {}


def _outbound(ctx: Context, out: str) -> Iterator[dict[str, Any]]:
    """The rows of the turn's outbound record that are not ends: its end is also the turn's own row."""
    log: str = (ctx.client.hget(ctx.keys.record(out), "log") or "") if out else ""
    for line in log.splitlines():
        row = json.loads(line)
        if row["outcome"] in ("retry", "park"):
            yield row


def _ledger(ctx: Context, out: str) -> dict[str, str]:
    return ctx.client.hgetall(ctx.keys.ledger(out)) if out else {}


def _fields(ctx: Context, ids: list[str], name: str) -> list[str | None]:
    if not ids:
        return []
    with ctx.client.pipeline(transaction=False) as pipe:
        for id_ in ids:
            pipe.hget(ctx.keys.record(id_), name)
        return pipe.execute()


def _blocks(keys: Iterator[str]) -> Iterator[list[str]]:
    while block := list(islice(keys, BLOCK)):
        yield block
