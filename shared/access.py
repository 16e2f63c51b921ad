"""The access overlay in Redis: what `millstream access` changed while everything runs, on top of the configuration."""

import json
from collections.abc import Mapping
from typing import Any

from shared.redis.client import Redis
from shared.redis.keys import Keys
from shared.settings import AccountSettings

FIELDS = ("owners", "members", "blocked", "direct", "groups", "listed_groups")


class Access:
    """Overlays by account."""

    def __init__(self, client: Redis, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    def overlaid(self, account: AccountSettings) -> AccountSettings:
        """The account with its overlay: what every access decision uses."""
        return overlaid(account, self._client.hgetall(self._keys.access(account.id)))

    def replace(self, account: str, **values: Any) -> None:
        """Set whole lists or modes of an account's overlay."""
        self._client.hset(self._keys.access(account), mapping={k: json.dumps(v) for k, v in values.items()})


def overlaid(account: AccountSettings, raw: Mapping[str, str]) -> AccountSettings:
    """The account with an overlay as Redis holds it."""
    if not raw:
        return account
    return account.model_copy(update={k: json.loads(v) for k, v in raw.items() if k in FIELDS})
