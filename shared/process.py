"""What every process has: the server, the keys, the scripts, the clock, the configuration in force, the switches."""

import secrets
import threading
from dataclasses import dataclass
from typing import Any

import structlog
from redis import exceptions as redis_errors

from shared.access import Access
from shared.beats import Beats, ServerWatch
from shared.clock import Clock, ServerClock
from shared.configuration import Follower, Versions
from shared.errors import Refused
from shared.redis.client import Redis, connect, server_time_ms
from shared.redis.keys import Keys
from shared.redis.scripts import LATE_MS, Scripts
from shared.settings import Settings
from shared.switches import SwitchBoard

log = structlog.get_logger()

FOLLOW_S = 0.5
"""Seconds between two looks for a newer configuration: it must be followed within a second."""


@dataclass(slots=True)
class Process:
    """The surroundings of one process. `partitions` is the number that was fixed at the first start."""

    client: Redis
    keys: Keys
    scripts: Scripts
    clock: Clock
    versions: Versions
    config: Follower
    switches: SwitchBoard
    access: Access
    server: ServerWatch
    beats: Beats
    partitions: int
    log_key: bytes


def build(
    settings: Settings, *, clock: Clock | None = None, client: Redis | None = None, starting: bool = True
) -> Process:
    """Reach the server and set everything up. Raises `shared.errors.Refused` with what to do when the number of
    partitions differs from the one in Redis, and redis errors when the server cannot be reached.

    starting: False for one who only looks (a command): nothing is written, and the own file makes no new version.
    """
    redis = client if client is not None else connect(settings.redis.url)
    keys = Keys(settings.redis.prefix)
    scripts = Scripts(redis, keys.prefix, shebang=knows_flags(redis), late_ms=0 if clock else LATE_MS)
    used = clock or ServerClock(lambda: server_time_ms(redis))
    partitions = _fixed_partitions(redis, keys, settings.pipeline.partitions) if starting else 0
    versions = Versions(redis, keys, settings)
    now = used.now_ms()
    follower = Follower(versions, now, starting=starting)
    switches = SwitchBoard(redis, keys)
    if starting:
        switches.first_values(settings, now)
        redis.set(keys.log_key, secrets.token_hex(32), nx=True)
    server = ServerWatch(redis, used, settings.pipeline.lease_s, keys.run_id if starting else "")
    beats = Beats(scripts, used, server)
    partitions = partitions or int(redis.get(keys.partitions) or 0)
    log_key = bytes.fromhex(redis.get(keys.log_key) or "")
    access = Access(redis, keys)
    return Process(redis, keys, scripts, used, versions, follower, switches, access, server, beats, partitions, log_key)


def knows_flags(client: Redis) -> bool:
    """False for a server that takes no script flags (fakeredis, the last resort of the demo)."""
    try:
        info: dict[str, Any] = client.info("server")
    except redis_errors.ResponseError:
        return False
    return int(str(info.get("redis_version", "0")).split(".", maxsplit=1)[0]) >= 7


def follow(process: Process, stop: threading.Event) -> None:
    """Follow the configuration until `stop`; for a thread of its own."""
    while not stop.wait(FOLLOW_S):
        if process.config.refresh():
            log.info("configuration_changed", version=process.config.version)


def _fixed_partitions(client: Redis, keys: Keys, wanted: int) -> int:
    client.set(keys.partitions, wanted, nx=True)
    fixed = int(client.get(keys.partitions))
    if fixed != wanted:
        raise Refused(
            f"pipeline.partitions is {wanted}, but {fixed} was fixed at the first start and orders what is under way: "
            f"set partitions = {fixed}"
        )
    return fixed
