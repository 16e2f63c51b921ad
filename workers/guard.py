"""The guarded consumer: what is not exactly a wake-up never reaches kombu or Celery.

One malformed message ends a stock worker, or every worker in turn, or stalls one. So each message is judged once, as
the bytes that BRPOP returned, before anything parses it for use: a wake-up goes on, anything else goes to the guard as
bytes with a reason, and the consumer sees an empty answer, as after a BRPOP that timed out.
"""

import base64
import hashlib
import json
import logging
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Protocol

from kombu.asynchronous import get_event_loop
from kombu.transport import redis as kombu_redis
from redis.exceptions import ConnectionError as RedisConnectionError

from shared.outcome import STAGES
from shared.redis.wakeups import is_name, queue_name, shape, task_name

_log = logging.getLogger(__name__)

# What Celery acts on and a wake-up never uses. Absent is as good; another value is poison. Headers that are not named
# here are let through, so that workers of two Celery versions can share a queue while one is being replaced.
_HEADERS: Final[Mapping[str, Any]] = {
    "lang": "py",
    "eta": None,
    "expires": None,
    "group": None,
    "chord": None,
    "retries": 0,
    "timelimit": [None, None],
    "ignore_result": True,
    "compression": None,
    "stamped_headers": None,
    "stamps": {},
}
_BODY_ENCODINGS: Final = (None, "utf-8", "base64")


HOT_LOOK_S: Final = 0.01
"""Seconds after which the consumer looks again whether the tasks still take their wake-ups themselves."""


class GuardPort(Protocol):
    """Where poison goes, and whether the consumer is needed."""

    def hot(self) -> bool:
        """True while the running tasks take the next wake-ups themselves, faster than any consumer could hand them
        over (`Runner`)."""
        ...

    def poison(self, raw: bytes, queue: str, reason: str) -> None:
        """Keep a message that is no wake-up: its bytes as they came, the queue without the prefix, what is wrong."""
        ...


def _same(value: object, expected: object) -> bool:
    """Equal and of the same type: in Python 0 equals False and 0.0, for Celery it does not."""
    return type(value) is type(expected) and value == expected


def _headers_defect(headers: Any, stage: str) -> str | None:
    if not isinstance(headers, dict):
        return "no headers"
    if headers.get("task") != task_name(stage):
        return "unknown task"
    for key in ("id", "root_id"):
        if not isinstance(headers.get(key), str) or not headers[key]:
            return f"header {key}"
    for key, expected in _HEADERS.items():
        if not _same(headers.get(key, expected), expected):
            return f"header {key}"
    return None


def _properties_defect(properties: Any, queue: str) -> str | None:
    if not isinstance(properties, dict):
        return "no properties"
    for key in ("correlation_id", "delivery_tag"):
        if not isinstance(properties.get(key), str) or not properties[key]:
            return f"property {key}"
    if not _same(properties.get("priority", 0), 0):
        return "property priority"
    route = properties.get("delivery_info")
    if not isinstance(route, dict) or route.get("exchange") != "" or route.get("routing_key") != queue:
        return "property delivery_info"
    encoding = properties.get("body_encoding")
    return None if encoding in _BODY_ENCODINGS else "property body_encoding"


def _body_defect(body: Any, encoding: str | None) -> str | None:
    if not isinstance(body, str):
        return "no body"
    try:
        content = json.loads(base64.b64decode(body, validate=True) if encoding == "base64" else body)
    except (ValueError, RecursionError):
        return "body is not JSON"
    if not isinstance(content, list) or len(content) != 3:
        return "body is not a triple"
    args, kwargs, embed = content
    if not isinstance(args, list) or len(args) != 1 or not isinstance(args[0], str) or not is_name(args[0]):
        return "argument is not one name"
    if kwargs != {} or not isinstance(kwargs, dict):
        return "keyword arguments"
    if not isinstance(embed, dict) or any(value is not None for value in embed.values()):
        return "callbacks"
    return None


def defect(raw: bytes, queue: str) -> str | None:
    """What keeps these bytes from being a wake-up of this queue (`wake.<stage>`); None if they are one."""
    stage = queue.removeprefix(queue_name(""))
    try:
        text = raw.decode()
        if stage in STAGES and shape(stage).fullmatch(text):
            return None  # as our scripts push them, which is nearly all
        message = json.loads(text)
    except UnicodeDecodeError:
        return "not UTF-8"
    except (ValueError, RecursionError):
        return "not JSON"
    if not isinstance(message, dict):
        return "not an object"
    if message.get("content-type") != "application/json" or message.get("content-encoding") != "utf-8":
        return "content type"
    found = _headers_defect(message.get("headers"), stage)
    found = found or _properties_defect(message.get("properties"), queue)
    return found or _body_defect(message.get("body"), message["properties"].get("body_encoding"))


class _VettedRedis(kombu_redis.PrefixedStrictRedis):
    """kombu's client with an eye on the answers to BRPOP. The prefix may be empty."""

    def __init__(self, *args: Any, guard: GuardPort, **kwargs: Any) -> None:
        self._guard = guard
        super().__init__(*args, **kwargs)

    def parse_response(self, connection: Any, command_name: str, **options: Any) -> Any:
        reply = super().parse_response(connection, command_name, **options)
        if command_name != "BRPOP" or not reply:
            return reply
        queue, raw = reply[0].decode(), reply[1]
        reason = defect(raw, queue)
        if reason is None:
            return reply
        try:
            self._guard.poison(raw, queue, reason)
        except Exception:
            # The worker must outlive its poison store. The bytes may hold anything, so the log gets their digest.
            digest = hashlib.sha256(raw).hexdigest()[:16]
            _log.exception(
                "poison_lost",
                extra={"queue": queue, "reason": reason, "size_bytes": len(raw), "digest": digest},
            )
        return None


class Channel(kombu_redis.Channel):
    """kombu's Redis channel, whose client lets nothing through but wake-ups.

    Needs the transport option `guard`, a `GuardPort`.
    """

    guard: GuardPort
    _looks_again = False
    from_transport_options = (*kombu_redis.Channel.from_transport_options, "guard")

    def _get_client(self) -> Any:
        super()._get_client()  # refuses a redis-py that is too old
        return partial(_VettedRedis, global_keyprefix=self.global_keyprefix, guard=self.guard)

    def _brpop_start(self, timeout: float | None = None) -> None:
        # Each wake-up that comes this way costs several times what a running task pays for the next one.
        loop = get_event_loop()
        if loop is None or not self.guard.hot():
            super()._brpop_start(timeout)
        elif not self._looks_again:
            self._looks_again = True
            loop.call_later(HOT_LOOK_S, self._look_again)

    def _look_again(self) -> None:
        # The loop has come round, which is all that was wanted: it asks for the next message each time.
        self._looks_again = False

    def _restore(self, message: Any, leftmost: bool = False) -> None:
        # What is given back at a worker's end goes out as it came in: kombu has made bytes of a body that was plain
        # text, and would write them as something that is no wake-up.
        if isinstance(message.body, bytes):
            message.body = message.body.decode()
        super()._restore(message, leftmost)

    def _connparams(self, asynchronous: bool = False) -> Any:
        # A channel that is closed twice after a lost connection has no client left. As an AttributeError that ends the
        # worker (Celery 5.7.0); as a lost connection, which it is, the consumer reconnects.
        if getattr(self.connection, "client", None) is None:
            raise RedisConnectionError("the channel is closed")
        return super()._connparams(asynchronous=asynchronous)


class Transport(kombu_redis.Transport):
    """kombu's Redis transport with guarded channels; named by `broker_transport`."""

    Channel = Channel
