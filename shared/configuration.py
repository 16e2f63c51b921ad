"""Numbered versions of the shared configuration in Redis, followed by every process within a second."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any, cast

from redis import exceptions as redis_errors

from shared.redis.client import Redis
from shared.redis.keys import Keys
from shared.settings import ConfigurationError, Settings, shared_part, with_shared_part

HISTORY = 200
"""Rows of the history that are kept; versions older than that cannot be rolled back to."""


@dataclass(frozen=True, slots=True)
class Current:
    """The configuration in force: settings and the number of their version."""

    settings: Settings
    version: int


class Versions:
    """The versions of one prefix."""

    def __init__(self, client: Redis, keys: Keys, process: Settings) -> None:
        self._client = client
        self._keys = keys
        self._process = process

    def start(self, now_ms: int) -> Current:
        """Apply the process's own file at its start: only if that very text was never applied before, so that a
        restart does not undo a later `config apply` or `rollback`."""
        digest = _digest(shared_part(self._process))
        if not any(row["sha"] == digest for row in self.history()):
            self.apply(self._process, "start", now_ms)
        return self.current()

    def apply(self, settings: Settings, who: str, now_ms: int) -> int:
        """Make `settings` the version in force; the same text again makes no new version. Returns its number."""
        return self._put(shared_part(settings), who, now_ms)

    def _put(self, data: dict[str, Any], who: str, now_ms: int) -> int:
        digest = _digest(data)
        rows = self.history()
        if rows and rows[0]["sha"] == digest:
            return int(rows[0]["version"])
        version = int(self._client.incr(self._keys.config(0)))
        row = {"version": version, "sha": digest, "who": who, "at": now_ms}
        with self._client.pipeline() as pipe:
            pipe.set(self._keys.config(version), json.dumps(data, ensure_ascii=False))
            pipe.lpush(self._keys.config_history, json.dumps(row))
            pipe.set(self._keys.config_current, version)
            pipe.execute()
        old = self._client.lrange(self._keys.config_history, HISTORY, -1)
        if old:
            self._client.delete(*[self._keys.config(int(json.loads(r)["version"])) for r in old])
            self._client.ltrim(self._keys.config_history, 0, HISTORY - 1)
        return version

    def rollback(self, version: int, who: str, now_ms: int) -> int:
        """Apply an old version again, as a new one. Raises ConfigurationError when it is not there."""
        self.get(version)
        return self._put(self._stored(version), who, now_ms)

    def get(self, version: int) -> Settings:
        """One version, validated. Raises ConfigurationError."""
        return with_shared_part(self._process, self._stored(version))

    def _stored(self, version: int) -> dict[str, Any]:
        text = self._client.get(self._keys.config(version))
        if text is None:
            raise ConfigurationError([f"version {version} is not kept; `millstream config show` lists those that are"])
        try:
            data = json.loads(text)
        except ValueError:
            data = None
        if not isinstance(data, dict):
            raise ConfigurationError([f"version {version} is no configuration: apply another one"])
        return cast("dict[str, Any]", data)

    def current(self) -> Current:
        """The version in force; before the first one, the process's own file as version 0."""
        number = int(self._client.get(self._keys.config_current) or 0)
        return Current(self.get(number) if number else self._process, number)

    def history(self) -> list[dict[str, Any]]:
        """Rows {version, sha, who, at}, newest first."""
        return [json.loads(row) for row in self._client.lrange(self._keys.config_history, 0, HISTORY - 1)]


class Follower:
    """What a process believes to be in force; `refresh` is called every second. An invalid or missing version leaves
    the last good one."""

    def __init__(self, versions: Versions, now_ms: int, *, starting: bool = True) -> None:
        self._versions = versions
        self.current = versions.start(now_ms) if starting else versions.current()

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.current.settings

    @property
    def version(self) -> int:
        """Their version."""
        return self.current.version

    def refresh(self) -> bool:
        """Look for a newer version; True when it changed."""
        try:
            latest = self._versions.current()
        except (redis_errors.RedisError, OSError, ConfigurationError):
            return False
        changed = latest.version != self.current.version
        if changed:
            self.current = latest
        return changed


def _digest(data: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
