"""The outbound index: what an account has sent, so that a quote of it can be read where the platform gives only an id
or a time (behaviour.md, section 3, "Outbound index").

Shared by all workers. One script writes, reads and keeps the bounds, so that they hold whoever comes when.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import structlog
from redis import exceptions as redis_errors

from shared.message import short_hash
from shared.redis.scripts import Scripts
from shared.settings import IndexSettings

log = structlog.get_logger()

Hit: TypeAlias = Literal["id", "time", "twice", "none"]
"""How an entry was found: by its exact `id`, or by its `time`; `twice`: an id names several entries, so nothing at all
may be taken for the quote; `none`: nothing fits, or several do by time."""

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """Something that was sent. Times are Unix milliseconds: before the send began, and when the platform had answered.

    scope: the chat in which it can be quoted; in a Weixin chat, which has two members, that is the user.
    ids: every id under which the platform may name it later; none where the platform gives none.
    """

    scope: str
    text: str
    sent_at_ms: int
    completed_at_ms: int
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to; `text` is empty unless `hit` is `id` or `time`."""

    hit: Hit
    text: str = ""


class OutboundIndex:
    """The index of one account. Every method is one script; all but `keep` raise redis errors when the server
    does not answer.

    At most `limits.max_entries` entries are kept, those that completed last, each at most `limits.max_age_days` old
    (one of exactly that age is kept) and cut to `limits.max_chars` code points.
    """

    def __init__(self, scripts: Scripts, account: str, limits: IndexSettings) -> None:
        self._scripts = scripts
        self._account = account
        self._limits = limits

    def add(self, entry: IndexEntry, now_ms: int, once: str) -> int:
        """Write an entry. `once` names this write: the same again changes nothing. Returns how many entries there are.

        An entry that is too old already, or older than all of a full index, is not kept.
        """
        reply = self._call(
            "add",
            now_ms,
            nonce=short_hash(once),
            scope=self._scope(entry.scope),
            ids=json.dumps(list(dict.fromkeys(entry.ids))),
            sent_at=entry.sent_at_ms,
            completed_at=entry.completed_at_ms,
            # A lone half of a surrogate pair, as a harness may write it, cannot be stored.
            text=entry.text[: self._limits.max_chars].encode("utf-8", "replace").decode(),
        )
        return int(reply)

    def keep(self, entry: IndexEntry, now_ms: int, once: str) -> None:
        """As `add`, for what has happened already: a write that fails warns (`index_write_failed`) and raises
        nothing."""
        try:
            self.add(entry, now_ms, once)
        except redis_errors.RedisError as error:
            log.warning("index_write_failed", account=self._account, error=type(error).__name__)

    def find(self, scope: str, ids: Sequence[str], quoted_at_ms: int | None, now_ms: int) -> Found:
        """The one entry of `scope` that a quote means: the first of `ids` that an entry has decides, else the quoted
        time (Unix ms), which must lie within `limits.window_s` of exactly one entry's sending."""
        at = {} if quoted_at_ms is None else {"at": quoted_at_ms}
        window_ms = int(self._limits.window_s * 1000)
        reply = self._call("find", now_ms, scope=self._scope(scope), ids=list(ids), window_ms=window_ms, **at)
        hit, *text = cast("list[str]", reply)
        return Found(cast("Hit", hit), *text)

    def size(self, now_ms: int) -> int:
        """How many entries there are."""
        return int(self._call("size", now_ms))

    def _call(self, op: str, now_ms: int, **arguments: Any) -> Any:
        age_ms = int(self._limits.max_age_days * DAY_MS)
        return self._scripts.call(
            "index", now_ms, op=op, account=self._account, most=self._limits.max_entries, age_ms=age_ms, **arguments
        )

    def _scope(self, chat: str) -> str:
        return short_hash("scope", self._account, chat)
