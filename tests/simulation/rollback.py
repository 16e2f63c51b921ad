"""A server that comes back without its last second: what it knew is copied now and then, and put back."""

from collections.abc import Mapping
from typing import Any, Final

from shared.redis.client import Redis
from tests.simulation.invariants import Books, Look, root_of
from tests.simulation.referee import Referee

LOST_MS: Final = 1000
"""What `appendfsync everysec` may lose."""
COPY: Final = """
redis.call('SELECT', 1)
redis.call('FLUSHDB')
redis.call('SELECT', 0)
for _, key in ipairs(redis.call('KEYS', '*')) do redis.call('COPY', key, key, 'DB', 1) end
"""


class Backup:
    """The last copy, and what has been done since. `lost`: accepted messages, in all, that no longer exist."""

    def __init__(self, client: Redis, books: Books, referee: Referee) -> None:
        self._client = client
        self._books = books
        self._referee = referee
        self._kept: Any = None
        self._touched: set[str] = set()
        self.until_ms: int | None = None
        self.lost = 0

    def keep(self, now_ms: int) -> None:
        """Copy everything."""
        self._client.eval(COPY, 0)
        self._kept = self._referee.snapshot()
        self._touched = set()
        self.until_ms = now_ms + LOST_MS

    def told(self, script: str, argument: Mapping[str, Any], answer: Any) -> None:
        """A script was carried out since."""
        if self.until_ms is None:
            return
        match script:
            case "accept":
                self._touched |= {item["id"] for item in argument["items"]}
            case "start" if answer[0] == "ok":
                self._touched.add(answer[1])
            case "move":
                self._touched |= {move["id"] for move in argument["moves"]}
            case "intent" | "reopen":
                self._touched.add(argument["id"])
            case "take" if answer[0] == "ok":
                self._touched.add(argument["id"])
            case "ledger":
                self._touched.add(argument["out"])
            case "takeover":
                self._touched |= set(answer[::2])
            case _:
                pass

    def restore(self, accepted: set[str], prefix: str) -> Look:
        """Put the copy back; `accepted` loses what exists no longer."""
        self._client.swapdb(0, 1)
        self.until_ms = None
        self._referee.restore(self._kept)
        look = Look(self._client, prefix)
        gone = {id_ for id_ in accepted if id_ not in look.recs}
        accepted -= gone
        self.lost += len(gone)
        self._books.forgotten(self._touched | {root_of(id_) for id_ in self._touched}, look)
        return look
