"""The Lua scripts: read from `lua/`, joined with `core.lua`, called by hash with one JSON argument.

A call has a nonce: a repeated call (the answer was lost, redis-py sent it again) is recognised by it.
"""

import hashlib
import secrets
from importlib import resources
from typing import Any, Final

from pydantic_core import to_json
from redis import exceptions as redis_errors

from shared.outcome import STAGES
from shared.redis import wakeups
from shared.redis.client import Redis

AT_THE_LIMIT: Final = frozenset(
    {
        "claim", "take", "start", "move", "send", "renew", "hold", "takeover", "release", "fire", "open", "ledger",
        "restore", "admit", "repush", "index",
    }
)  # fmt: skip
"""Scripts that must run when the server's memory is full: they let work end, or keep bounds of their own (index).
Accept is not among them."""


def _read(name: str) -> str:
    return resources.files("shared.redis").joinpath("lua", f"{name}.lua").read_text(encoding="utf-8")


LATE_MS: Final = 60_000
"""A lease, start, intent or replay that the server carries out so much later has lost its caller: a call is repeated
at most `REPEATS` times, each waiting 10 s for its answer (`shared.redis.client`), and each time it is the same call."""


class Scripts:
    """The scripts of one prefix on one server. `shebang` False: the server knows no script flags (fakeredis).
    `late_ms`: see LATE_MS; 0 where `now_ms` is not the server's time."""

    def __init__(self, client: Redis, prefix: str, *, shebang: bool = True, late_ms: int = LATE_MS) -> None:
        self._client = client
        self._prefix = prefix
        self._shebang = shebang
        self._sources: dict[str, tuple[str, str]] = {}
        texts = {s: wakeups.template(s, wakeups.queue_name(s), wakeups.task_name(s)) for s in STAGES}
        rows = "\n".join(f"{stage} = [==[{text}]==]," for stage, text in texts.items())
        self._head = f"local P = '{prefix}'\nlocal LATE_MS = {late_ms}\nlocal WAKE = {{\n{rows}\n}}\n{_read('core')}\n"

    def source(self, name: str) -> tuple[str, str]:
        """The whole text of a script and its SHA-1."""
        if name not in self._sources:
            flags = " flags=allow-oom" if name in AT_THE_LIMIT else ""
            first = f"#!lua{flags}\n" if self._shebang else ""
            text = first + self._head + _read(name)
            self._sources[name] = (text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())
        return self._sources[name]

    def call(self, name: str, now_ms: int, /, **arguments: Any) -> Any:
        """Run a script; its header says what it wants and replies."""
        arguments |= {"now": now_ms, "nonce": arguments.get("nonce") or secrets.token_hex(6)}
        argument = to_json(arguments)  # several times faster than the standard library, and this is every call
        text, sha = self.source(name)
        try:
            return self._client.evalsha(sha, 0, argument)
        except redis_errors.NoScriptError:
            return self._client.eval(text, 0, argument)


def pairs(flat: list[str]) -> dict[str, str]:
    """A hash as a script replies it: field, value, field, value."""
    return dict(zip(flat[::2], flat[1::2], strict=True))
