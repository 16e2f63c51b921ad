"""Logs: structlog, static event names, no text of anybody, no secret.

What is written is one line a message a stage: bind the context when the stage takes the message (`bind`), clear it when
it lets go (`clear`). Event names are constants like `stage_done`; whatever is not shaped like one is replaced, since it
may hold what a person wrote. Fields that carry text or secrets by their name are refused, passwords and bot tokens in
addresses are masked, and of an exception only its class and the places it passed are kept: messages of exceptions often
quote the input (pydantic's do). The address of Redis may hold a password: do not log it at all.
"""

import hashlib
import hmac
import logging
import re
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, TextIO, cast

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

MASK: Final = "[redacted]"
FRAMES: Final = 20
"""Innermost frames of a traceback that are kept: enough to find the place, bounded for a recursion."""
STRING_LIMIT: Final = 1000
"""Longest string in a field, in code points: ids, reasons and names are far shorter."""

_FORBIDDEN: Final = frozenset(
    {
        "answer", "api_key", "authorization", "body", "caption", "content", "cookie", "credentials", "headers",
        "message_text", "parts", "password", "payload", "preferences", "prompt", "question", "quote", "quoted",
        "quoted_id", "quoted_text", "raw", "reply", "reply_to", "secret", "selected", "signature", "system",
        "text", "text_raw", "title", "token", "transcript", "url",
    }
)  # fmt: skip
_FORBIDDEN_ENDS: Final = ("_text", "_token", "_secret", "_password", "_api_key", "_prompt", "_content", "_body", "_url")
_EVENT: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
# The user part of an address, and the token in a Bot API path (digits, colon, letters).
_LEAKS: Final = re.compile(r"(?<=://)\S*@|(?<=bot)\d{3,}:[\w-]+")


class LogChoice(Protocol):
    """`settings.log`: `format` is auto, console or json; `level` a level's name in lower case."""

    @property
    def format(self) -> str: ...
    @property
    def level(self) -> str: ...


def configure(choice: LogChoice, stream: TextIO = sys.stderr) -> None:
    """Set up structlog and the standard library's logging for this process; calling it again replaces the former.

    `auto` is console on a terminal, else JSON. httpx and uvicorn are heard from WARNING on: below that they log
    addresses, which can hold tokens.
    """
    plain = choice.format == "json" or (choice.format == "auto" and not stream.isatty())
    level = logging.getLevelNamesMapping()[choice.level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        frames_only,
        redact,
    ]
    renderer: Processor = (
        structlog.processors.JSONRenderer()
        if plain
        else structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback)
    )
    structlog.configure(
        processors=[static_event, *shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[template_only, *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in ("httpx", "httpcore", "uvicorn", "uvicorn.error", "uvicorn.access", "asyncio"):
        foreign = logging.getLogger(name)
        foreign.handlers.clear()
        foreign.propagate = True
        foreign.setLevel(max(level, logging.WARNING))


def logger(name: str) -> FilteringBoundLogger:
    """A logger whose lines carry `log=name`."""
    return cast("FilteringBoundLogger", structlog.get_logger(log=name))


def bind(**values: str | int | float | bool | None) -> None:
    """Add `values` to every line of this task or thread until `clear`."""
    structlog.contextvars.bind_contextvars(**values)


def clear() -> None:
    """Forget what `bind` added."""
    structlog.contextvars.clear_contextvars()


def quoted_id_hash(key: bytes, quoted_id: str) -> str:
    """The only form in which a quoted id may be logged: HMAC-SHA-256 with `key`, 16 hex digits (operations.md)."""
    return hmac.new(key, quoted_id.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:16]


def static_event(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Replace an event name that is not a lower-case constant: it may have been built from somebody's text."""
    name = event.get("event")
    if not isinstance(name, str) or not _EVENT.fullmatch(name):
        event["event"] = "unnamed_event"
    return event


def template_only(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Of another library's line keep the first line of its template: what is filled in may quote anything."""
    record = event.get("_record")
    if isinstance(record, logging.LogRecord):
        event["log"] = record.name
        event["event"] = (str(record.msg).splitlines() or [""])[0]
    return event


def redact(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Mask fields that carry text or secrets by their name, and passwords and tokens inside other strings."""
    return {key: _clean(key, value) for key, value in event.items()}


def frames_only(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Turn `exc_info` into `error` (the class) and `frames` (file:line function), without message or source text."""
    given = event.pop("exc_info", None)
    event.pop("stack_info", None)
    error = _exception(given)
    if error is not None:
        event["error"] = type(error).__qualname__
        event["frames"] = places(error.__traceback__)
    return event


def places(trace: TracebackType | None) -> list[str]:
    """The innermost `FRAMES` places of a traceback, `file:line function`; the file without its folder."""
    frames = traceback.extract_tb(trace)[-FRAMES:]
    return [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames]


def _exception(given: object) -> BaseException | None:
    if isinstance(given, BaseException):
        return given
    if isinstance(given, tuple):
        found = cast("tuple[object, ...]", given)[1:2]
        return found[0] if found and isinstance(found[0], BaseException) else None
    return sys.exc_info()[1] if given else None


def _clean(key: str, value: object) -> Any:
    # structlog keeps its own helpers under keys that begin with an underscore.
    if key.startswith("_"):
        return value
    if value is None or isinstance(value, bool | int | float):
        return value
    lowered = key.lower()
    if lowered in _FORBIDDEN or lowered.endswith(_FORBIDDEN_ENDS):
        return MASK
    if isinstance(value, Mapping):
        return {str(k): _clean(str(k), v) for k, v in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean(key, item) for item in cast("list[object]", value)]
    return _LEAKS.sub(MASK, str(value))[:STRING_LIMIT]
