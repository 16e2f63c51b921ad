"""Access tokens that a platform lends for some hours, kept by each process until shortly before they end."""

import hashlib
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Final

from shared.settings import AccountSettings

EARLY_S: Final = 300.0
"""So long before its end a token is used no more: requests under way, and clocks that differ. Tokens live two hours."""


class Tokens:
    """The tokens of one process, shared by its threads.

    Two that find none at the same time both log in, which the platforms allow: nobody waits for anybody's call.
    """

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._lock = threading.Lock()
        self._known: dict[str, tuple[str, float]] = {}

    async def get(self, account: AccountSettings, fetch: Callable[[], Awaitable[tuple[str, float]]]) -> str:
        """The account's token; `fetch` logs in and gives one with the seconds it lives. Raises what `fetch` raises."""
        name = _name(account)
        with self._lock:
            token, until_s = self._known.get(name, ("", float("-inf")))
        if self._clock_s() < until_s:
            return token
        asked_s = self._clock_s()
        token, lives_s = await fetch()
        with self._lock:
            # A token that lives hardly longer than the reserve is used for half its life.
            self._known[name] = token, asked_s + max(lives_s - EARLY_S, lives_s / 2)
        return token

    def forget(self, account: AccountSettings) -> None:
        """The platform refused the token: the next `get` logs in."""
        with self._lock:
            self._known.pop(_name(account), None)


def _name(account: AccountSettings) -> str:
    """Names an account as it is configured now, so that new credentials never meet an old token."""
    secrets = sorted((key, value.get_secret_value()) for key, value in account.credentials.items())
    return hashlib.sha256(repr((account.channel, account.id, secrets)).encode("utf-8", "replace")).hexdigest()


TOKENS: Final = Tokens()
"""Those of this process."""
