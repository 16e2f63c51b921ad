"""Conversations that are known already: exactly the keys that one answered message left, copied under new names.

One conversation is played through the real pipeline; whatever keys are there afterwards that were not before, that name
it or one of its ids, and that live longer than ten minutes, are its template. What it left in keys shared by all
(counters, capped streams) is not copied. Copies' envelope ids are those of 1970, so that nobody takes them for fresh.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

from shared.redis.client import Redis
from workers.ops.bench.events import message_id, text
from workers.ops.bench.stack import Ours

CHAT: Final = "known-000000000"
"""The template's person; the digits are replaced."""
LASTING_MS: Final = 600_000
"""Keys that go sooner are not what an idle conversation keeps."""
CHUNK: Final = 500
"""Copies in one script call: the server answers others in between."""
NAMES: Final = re.compile(r"known-\d{9}|[0-9A-HJKMNP-TV-Z]{26}|[0-9a-f]{24}")
"""What in a key belongs to one conversation: its person, envelope ids (ULIDs), 24 hex digits of a hash."""

Pieces = list["str | int"]


@dataclass(frozen=True, slots=True)
class Key:
    """One key of the template; `items` as its type's own command takes them. `size`: bytes, as the server reckons."""

    name: str
    type: str
    ttl_ms: int
    items: tuple[str, ...]
    size: int = 0


def template(ours: Ours) -> list[Key]:
    """Play one conversation and read what it left."""
    before = set(ours.client.scan_iter(count=1000))
    run = ours.next_run()
    message = ours.message("answered", run, 0, 0).model_copy(
        update={"chat_id": CHAT, "sender_id": CHAT, "keys": (f"{CHAT}:{message_id(run, 0)}",), "text": text(run, 0)}
    )
    ours.accept([message])
    ours.rest()
    fresh = sorted(set(ours.client.scan_iter(count=1000)) - before)
    found = [_read(ours.client, name) for name in fresh]
    return [key for key in found if NAMES.search(key.name) and (key.ttl_ms < 0 or key.ttl_ms > LASTING_MS)]


def pieces(said: str, names: Sequence[str]) -> Pieces:
    """Pure. `said` cut at every one of `names`, which becomes its number, counted from 1."""
    if not names:
        return [said]
    parts = re.split("(" + "|".join(map(re.escape, names)) + ")", said)
    return [names.index(part) + 1 if part in names else part for part in parts if part] or [""]


def format_of(name: str) -> str:
    """Pure. How Lua writes a fresh name that looks like this one from a number."""
    if name.startswith("known-"):
        return "known-%09d"
    return f"%0{len(name)}x" if name.islower() or name.isdigit() else f"%0{len(name)}X"


def seed(ours: Ours, keys: Sequence[Key], first: int, count: int) -> int:
    """Write `count` conversations, numbered from `first`; returns how many keys they have."""
    names = sorted({CHAT, *(name for key in keys for name in NAMES.findall(key.name))})
    order: dict[str, Any] = {
        "formats": [format_of(name) for name in names],
        "keys": [
            {
                "name": pieces(key.name, names), "type": key.type, "ttl_ms": key.ttl_ms,
                "items": [pieces(item, names) for item in key.items],
            }
            for key in keys
        ],
    }  # fmt: skip
    script = ours.client.register_script(resources.files("workers.ops.bench").joinpath("clone.lua").read_text("utf-8"))
    written = 0
    for start in range(first, first + count, CHUNK):
        size = min(CHUNK, first + count - start)
        written += int(script(args=[json.dumps(order | {"first": start, "count": size})]))
    return written


def _read(client: Redis, name: str) -> Key:
    kind = client.type(name)
    match kind:
        case "hash":
            items = [part for pair in client.hgetall(name).items() for part in pair]
        case "list":
            items = client.lrange(name, 0, -1)
        case "set":
            items = list(client.smembers(name))
        case "zset":
            items = [
                part for member, score in client.zrange(name, 0, -1, withscores=True) for part in (repr(score), member)
            ]
        case _:
            items = [client.get(name)]
    return Key(name, kind, int(client.pttl(name)), tuple(items), int(client.memory_usage(name) or 0))
