"""How a process talks to the server: one synchronous client, scripts by hash, times from the server."""

from typing import Any, TypeAlias

import redis
from redis import exceptions as redis_errors
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

Redis: TypeAlias = Any
"""redis-py's own types join the asynchronous client's answers to every command's; a client is therefore Any here, and
each caller names what it expects."""

REPEATS = 3
"""How often a command whose connection broke is sent again. Every script gives the same answer when it is repeated."""


def connect(url: str) -> Redis:
    """A client for `url`; nothing is sent yet. Commands that meet a broken connection are repeated up to 3 times
    within about a second, then raise `redis_errors.ConnectionError` or `TimeoutError`.

    Bytes that are not UTF-8 come as lone surrogates (`surrogateescape`): one spoilt record must not keep the others of
    its batch from being read."""
    return redis.Redis.from_url(
        url,
        decode_responses=True,
        encoding_errors="surrogateescape",
        socket_timeout=10,
        socket_connect_timeout=5,
        socket_keepalive=True,
        health_check_interval=10,
        retry=Retry(ExponentialBackoff(cap=0.5, base=0.05), REPEATS),
        retry_on_error=[redis_errors.ConnectionError, redis_errors.TimeoutError],
    )


def server_time_ms(client: Redis) -> int:
    """The server's clock, Unix milliseconds. Raises ConnectionError when it cannot be asked."""
    try:
        seconds, micros = client.time()
    except (redis_errors.ConnectionError, redis_errors.TimeoutError) as error:
        raise ConnectionError(str(error)) from error
    return int(seconds) * 1000 + int(micros) // 1000
