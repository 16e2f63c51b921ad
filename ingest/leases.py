"""A connector's lease and cursor in Redis: one process polls an account, and only it may move the account's cursor."""

import asyncio
import json
import secrets
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, TypeVar

from redis import exceptions as redis_errors

from ingest.port import Cursor, Fence, Unavailable
from shared.beats import Hold
from shared.process import Process

T = TypeVar("T")


def lease_name(account_id: str) -> str:
    """The name under which an account's connector is held."""
    return f"acct:{account_id}"


class RedisLease:
    """The lease of one account's connector; renewed by the process's beats while it is held."""

    def __init__(self, process: Process, account_id: str) -> None:
        self._process = process
        self._name = lease_name(account_id)
        self._held = ExitStack()
        self._hold: Hold | None = None

    async def acquire(self) -> Fence | None:
        """The fence, or None while another process holds the lease. Raises Unavailable."""
        self._forget()
        token = secrets.token_hex(8)
        if await _asked(lambda: self._call("hold", token)) != 1:
            return None
        length_s = self._process.config.settings.pipeline.lease_s
        self._hold = self._held.enter_context(
            self._process.beats.holding(self._name, token, length_s, limit_s=float("inf"))
        )
        return Fence(token)

    def valid(self) -> bool:
        """False once the lease was lost or could not be renewed for two thirds of its length."""
        return self._hold is not None and not self._hold.lost

    async def release(self) -> None:
        """Give it back; harmless when it is not held. Never raises: one that cannot be given back runs out."""
        hold = self._hold
        self._forget()
        if hold is None:
            return
        try:
            await _asked(lambda: self._call("release", hold.token))
        except Unavailable:
            return

    def _forget(self) -> None:
        self._held.close()
        self._hold = None

    def _call(self, script: str, token: str) -> Any:
        process = self._process
        return process.scripts.call(script, process.clock.now_ms(), name=self._name, token=token, slots={})


class RedisCursors:
    """Where one account's long poll stands."""

    def __init__(self, process: Process, account_id: str) -> None:
        self._process = process
        self._name = lease_name(account_id)
        self._key = process.keys.cursor(account_id)

    async def load(self) -> Cursor | None:
        """The stored cursor, None at the very first start. Raises Unavailable."""
        stored: str | None = await _asked(lambda: self._process.client.get(self._key))
        if stored is None:
            return None
        value = json.loads(stored)
        return Cursor(int(value["offset"]), int(value["at_ms"]))

    async def save(self, cursor: Cursor, fence: Fence) -> bool:
        """Store it; False when `fence` is no longer the holder's, then nothing was stored. Raises Unavailable."""
        process = self._process
        value = json.dumps({"offset": cursor.offset, "at_ms": cursor.at_ms})

        def store() -> Any:
            return process.scripts.call(
                "cursor", process.clock.now_ms(), name=self._name, token=fence.token, key=self._key, value=value
            )

        return await _asked(store) == 1


async def _asked(call: Callable[[], T]) -> T:
    """Ask the server from a thread. Raises Unavailable."""
    try:
        return await asyncio.to_thread(call)
    except (redis_errors.RedisError, OSError) as error:
        raise Unavailable(type(error).__name__) from error
