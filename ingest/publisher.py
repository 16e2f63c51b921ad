"""The way into the pipeline: ticket and record in one script, and only then is anything acknowledged.

Requests that come at the same time share one script call (`batch_linger_ms`, `batch_max`); one that comes alone waits
for nobody, and those that come while it is under way go together.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from redis import exceptions as redis_errors

from ingest.port import Accepted, Overloaded, Unavailable
from shared import tracing
from shared.envelope import Envelope, new_id
from shared.message import Message, lane_of, partition_of, short_hash
from shared.redis.client import Redis
from shared.redis.scripts import Scripts
from shared.settings import Settings

MEMORY_STOP: Final = 0.9
"""Accept stops at 90 % of the server's memory limit (design, section 3, Retention)."""
MEMORY_EVERY_S: Final = 1.0
"""Seconds between two looks at the server's memory."""
AGAIN_S: Final = 5.0
"""What a refused caller is told to wait."""


@dataclass(slots=True)
class _Waiting:
    items: list[dict[str, str | int]]
    answer: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Publisher:
    """The publisher of one process. `settings_now` gives the configuration in force, `fresh_id` an envelope's id for
    the Unix ms at which it was received."""

    def __init__(
        self,
        client: Redis,
        scripts: Scripts,
        settings_now: Callable[[], Settings],
        now_ms: Callable[[], int],
        partitions: int,
        fresh_id: Callable[[int], str] = new_id,
    ) -> None:
        self._fresh_id = fresh_id
        self._client = client
        self._scripts = scripts
        self._settings_now = settings_now
        self._now_ms = now_ms
        self._partitions = partitions
        self._waiting: list[_Waiting] = []
        self._flusher: asyncio.Task[None] | None = None
        self._memory_at = float("-inf")
        self._memory_full = False

    async def accept(self, messages: Sequence[Message], received_at_ms: int) -> Accepted:
        """Make the messages' records; returns only when the server has them all. Raises Overloaded or Unavailable."""
        if not messages:
            return Accepted(())
        items = [self._item(message, received_at_ms) for message in messages]
        waiting = _Waiting(items)
        self._waiting.append(waiting)
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.create_task(self._flush())
        # A caller that gives up waiting must not take the batch of the others with it.
        await asyncio.shield(waiting.answer)
        return Accepted(tuple(str(item["id"]) for item in items))

    def _item(self, message: Message, received_at_ms: int) -> dict[str, str | int]:
        settings = self._settings_now()
        account = settings.account(message.account)
        route = settings.route(message.account, message.chat_id, message.thread_id, message.chat_type, None)
        scope = route.session_scope or (account.session_scope if account else "chat")
        id_ = self._fresh_id(received_at_ms)
        envelope = Envelope(
            id=id_,
            message=message,
            received_at_ms=received_at_ms,
            traceparent=str(tracing.of_envelope(id_)),
        )
        sender = message.sender_id if scope == "sender" else None
        return {
            "id": id_,
            "env": envelope.to_json(),
            "part": str(partition_of(message.account, message.chat_id, self._partitions)),
            "lane": lane_of(message.account, message.chat_id, message.thread_id, sender),
            "account": message.account,
            "channel": message.channel,
            "fkey": short_hash(message.account, message.keys[0]),
            "at": received_at_ms,
            "mid": message.message_id,
        }

    async def _flush(self) -> None:
        ingest = self._settings_now().ingest
        while self._waiting:
            if len(self._waiting) > 1 and self._items() < ingest.batch_max and ingest.batch_linger_ms:
                await asyncio.sleep(ingest.batch_linger_ms / 1000)
            batch, count = [], 0
            while self._waiting and count < ingest.batch_max:
                batch.append(self._waiting.pop(0))
                count += len(batch[-1].items)
            error = await asyncio.to_thread(self._call, [item for w in batch for item in w.items])
            if isinstance(error, Overloaded) and len(batch) > 1:
                for one in batch:
                    _settle(one, await asyncio.to_thread(self._call, one.items))
                continue
            for one in batch:
                _settle(one, error)

    def _items(self) -> int:
        return sum(len(waiting.items) for waiting in self._waiting)

    def _call(self, items: list[dict[str, str | int]]) -> Exception | None:
        settings = self._settings_now()
        try:
            if self._full():
                return Overloaded("memory", AGAIN_S)
            reply = self._scripts.call(
                "accept",
                self._now_ms(),
                items=items,
                max_depth=settings.ingest.max_queue_depth,
                max_account_depth=settings.ingest.max_account_depth,
            )
        except redis_errors.OutOfMemoryError:
            return Overloaded("memory", AGAIN_S)
        except (redis_errors.RedisError, OSError) as error:
            if "OOM" in str(error):
                return Overloaded("memory", AGAIN_S)
            return Unavailable(type(error).__name__)
        except Exception as error:
            return error  # a fault of ours: each caller gets it, none waits for ever
        if reply[0] == "full":
            return Overloaded(reply[1], AGAIN_S)
        return None

    def _full(self) -> bool:
        now = time.monotonic()
        if now - self._memory_at > MEMORY_EVERY_S:
            limit, used = self._memory()
            self._memory_full = bool(limit) and used > limit * MEMORY_STOP
            self._memory_at = now
        return self._memory_full

    def _memory(self) -> tuple[int, int]:
        try:
            info: dict[str, Any] = self._client.info("memory")
        except redis_errors.ResponseError:
            return 0, 0  # fakeredis has neither INFO nor a limit
        return int(info.get("maxmemory", 0)), int(info["used_memory"])


def _settle(waiting: _Waiting, error: Exception | None) -> None:
    if waiting.answer.done():
        return
    if error is None:
        waiting.answer.set_result(None)
    else:
        waiting.answer.set_exception(error)
