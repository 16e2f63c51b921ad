"""What `millstream check` looks at: configuration, Redis, harnesses, channels. Each finding says its cure."""

import asyncio
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import redis
from redis import exceptions as redis_errors
from redis.backoff import NoBackoff
from redis.retry import Retry

from shared.channels import BUILT, channel
from shared.channels.http import HttpApi
from shared.errors import MillstreamError, Refused
from shared.redis.embedded import available_kinds
from shared.settings import AccountSettings, HarnessSettings, Settings, problems

REACH_S: Final = 5.0
"""How long anything that is reached may take: design.md's connect timeout (section 3)."""
OLDEST: Final = 7
"""The oldest major version of Redis: flags of scripts came with it. Valkey calls itself 7.2 to such questions."""


CONNECTED: Final[Mapping[str, tuple[str, ...]]] = {"telegram": ("poll",)}
"""Transports other than a webhook that have a connector (`ingest.connectors`), by channel."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: what was looked at (`path`), what is so (`text`), what to do (`fix`, empty where all is well)."""

    severity: Literal["ok", "warning", "error"]
    path: str
    text: str
    fix: str = ""


def of_settings(settings: Settings) -> Iterator[Finding]:
    """What the configuration alone tells."""
    for one in problems(settings):
        yield Finding(one.severity, one.path, one.text, one.fix)
    yield from _unbuilt(settings)


def _unbuilt(settings: Settings) -> Iterator[Finding]:
    """What is configured and not built yet."""
    if settings.judge.kind != "none":
        yield Finding("error", "judge.kind", "the judge is not built yet", 'set judge.kind = "none"')
    if settings.engagement.engine:
        yield Finding("error", "engagement.engine", "the engine is not built yet", "set engagement.engine = false")
    joining: list[str] = []
    for number, account in enumerate(settings.accounts):
        path = f"accounts[{number}]"
        if account.channel not in BUILT:
            built = ", ".join(sorted(BUILT))
            yield Finding("error", f"{path}.channel", f"{account.channel} is not built yet", f"use one of {built}")
        elif account.used_transport not in ("webhook", *CONNECTED.get(account.channel, ())):
            way = f"{account.channel}'s {account.used_transport}"
            yield Finding("error", f"{path}.transport", f"{way} is not built yet", f'set {path}.transport = "webhook"')
        if account.engagement.engine and not settings.engagement.engine:
            yield Finding(
                "error",
                f"{path}.engagement.engine",
                "the engine is not built yet",
                f"set {path}.engagement.engine = false",
            )
        if account.send_mode == "confirm":
            yield Finding(
                "error", f"{path}.send_mode", "drafts are not built yet", f'set {path}.send_mode to "auto" or "off"'
            )
        if account.join_s > 0:
            joining.append(account.id)
        for limit in ("sender_per_minute", "chat_per_minute", "account_per_day"):
            if getattr(account, limit):
                yield Finding(
                    "error", f"{path}.{limit}", "limits of turns are not built yet", f"set {path}.{limit} = 0"
                )
    for number, route in enumerate(settings.routes):
        if route.send_mode == "confirm":
            yield Finding("error", f"routes[{number}].send_mode", "drafts are not built yet", "remove it")
        if route.engagement is not None and route.engagement.engine:
            yield Finding("error", f"routes[{number}].engagement.engine", "the engine is not built yet", "remove it")
    if joining:
        yield Finding(
            "warning",
            "accounts.join_s",
            f"joining is not built yet, every message is a turn of its own ({', '.join(joining)})",
            "set join_s = 0 to say that you know",
        )


def of_redis(settings: Settings) -> Iterator[Finding]:
    """Whether the server is there and fit. Without an address: whether `up` could start one."""
    url = settings.redis.url
    if not url:
        kinds = [kind for kind in available_kinds() if kind != "fakeredis"]
        if kinds:
            yield Finding("ok", "redis.url", f"empty: `millstream up` starts a server of its own ({kinds[0]})")
        else:
            yield Finding(
                "error", "redis.url", "empty, and this machine has no server to start",
                "install redis-server or valkey-server, or set redis.url",
            )  # fmt: skip
        return
    try:
        client: Any = redis.Redis.from_url(
            url, decode_responses=True, socket_timeout=REACH_S, socket_connect_timeout=REACH_S,
            retry=Retry(NoBackoff(), 0),
        )  # fmt: skip
    except ValueError:
        yield Finding("error", "redis.url", "is no address of a server", "write redis://host:6379/0 or rediss://…")
        return
    try:
        info: dict[str, Any] = client.info()
    except (redis_errors.AuthenticationError, redis_errors.NoPermissionError):
        yield Finding("error", "redis.url", "the server refuses the user or password", "correct redis.url")
    except (redis_errors.RedisError, OSError) as error:
        why = type(error).__name__
        yield Finding("error", "redis.url", f"the server does not answer ({why})", "start it or correct redis.url")
    else:
        yield from _fit(info)
    finally:
        client.close()


def _fit(info: dict[str, Any]) -> Iterator[Finding]:
    name = "Valkey" if "valkey_version" in info else "Redis"
    version = str(info.get("valkey_version") or info.get("redis_version", "0"))
    if int(str(info.get("redis_version", "0")).split(".", maxsplit=1)[0]) < OLDEST:
        yield Finding("error", "redis", f"Redis {version} is too old", "update it to Redis 7 or Valkey 8")
    else:
        yield Finding("ok", "redis", f"{name} {version} answers")
    policy = info.get("maxmemory_policy")
    if policy not in (None, "noeviction"):
        yield Finding(
            "error", "redis maxmemory-policy", f"{policy} throws messages away when memory is full",
            "set maxmemory-policy noeviction",
        )  # fmt: skip
    if not int(info.get("aof_enabled", 0)):
        yield Finding(
            "warning", "redis appendonly", "no append-only file: a crash of the server loses what is under way",
            "set appendonly yes",
        )  # fmt: skip


def of_harnesses(settings: Settings) -> Iterator[Finding]:
    """Whether each harness's address takes connections; nothing is asked of it."""
    yield from _harness("harness", settings.harness)
    for name, harness in settings.harnesses.items():
        yield from _harness(f"harnesses.{name}", harness)


def _harness(path: str, harness: HarnessSettings) -> Iterator[Finding]:
    if harness.kind == "echo":
        yield Finding("ok", path, "echo: repeats what it is told")
        return
    if not harness.url:
        return  # already told by the configuration's own check
    try:
        parts = urlsplit(harness.url)
        host, port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        host, port = None, 0
    if not host:
        yield Finding("error", f"{path}.url", "is no address", f"correct {path}.url")
        return
    try:
        socket.create_connection((host, port), REACH_S).close()
    except OSError as error:
        why = error.strerror or type(error).__name__
        yield Finding(
            "error", f"{path}.url", f"{host}:{port} cannot be reached ({why})", f"start it or correct {path}.url"
        )
    else:
        yield Finding("ok", f"{path}.url", f"{host}:{port} takes connections")


def of_channels(settings: Settings) -> list[Finding]:
    """Who each platform says the bot is."""

    async def all_of_them() -> list[Finding]:
        accounts = [(f"accounts[{n}]", a) for n, a in enumerate(settings.accounts) if a.channel in BUILT]
        return list(await asyncio.gather(*(_identity(path, account) for path, account in accounts)))

    return asyncio.run(all_of_them())


async def _identity(path: str, account: AccountSettings) -> Finding:
    name = f"{path} {account.id}"
    api = HttpApi(account.id, account.channel)
    try:
        async with asyncio.timeout(2 * REACH_S):
            found = await channel(account.channel).identity(account, api)
    except Refused:
        return Finding("error", name, f"{account.channel} refuses the credentials", f"correct {path}.credentials.token")
    except (MillstreamError, TimeoutError) as error:
        why = type(error).__name__
        return Finding(
            "error", name, f"{account.channel} could not be asked ({why})", "look at the network, then check again"
        )
    finally:
        await api.aclose()
    own = account.all_self_ids
    if own and found.self_ids and own.isdisjoint(found.self_ids):
        return Finding(
            "error", name, f"{account.channel} calls the bot {' '.join(found.self_ids)}, not self_id",
            f'set {path}.self_id = "{found.self_ids[0]}"',
        )  # fmt: skip
    return Finding("ok", name, f"{account.channel} knows the bot as {found.name or 'unnamed'}")
