"""Wake-ups: the Celery messages that tell a worker to look, as text that a Lua script can push.

A wake-up carries one name (a partition's number, a harness's name or an id) and no authority: the worker reads the
place afresh. The text is made by Celery's and kombu's own functions, once a process; a script then fills in three
marks and pushes the bytes in the same step as the move. The list's key is the prefix followed by the queue's name.
"""

import json
import re
from functools import lru_cache
from typing import Any, Final

from celery import Celery
from kombu.connection import Connection
from kombu.messaging import Producer
from kombu.transport import virtual

NAME_MARK: Final = "@@NAME@@"
"""Stands where the task's argument goes."""

ID_MARK: Final = "@@ID@@"
"""Stands where the task's id goes, which is also the correlation, root and delivery id: fresh for every push."""

AT_MARK: Final = "@@AT@@"
"""Stands where the time of the push goes: integer milliseconds, a bare number. In Lua use the argument's text, never
`tostring` of a number, which would round it."""

# The argument stands inside JSON inside JSON, and a script puts it there with gsub, whose replacement treats the
# percent sign specially: what would need an escape in one of the three is not a name.
_NAME = re.compile(r'[^\x00-\x1f\x7f"\\%]{1,512}')


def queue_name(stage: str) -> str:
    """The Celery queue of a stage; with the prefix in front, also the key of its Redis list."""
    return f"wake.{stage}"


def task_name(stage: str) -> str:
    """The Celery task of a stage."""
    return f"{stage}.run"


def is_name(text: str) -> bool:
    """Whether a wake-up can carry this text: 1 to 512 characters, none a control, a quote, a backslash or a percent."""
    return _NAME.fullmatch(text) is not None


class _CapturingChannel(virtual.Channel):
    """A channel on no server, that keeps what kombu would have put into a queue.

    body_encoding None leaves the body as plain text: behind base64 a script could not reach the argument.
    """

    do_restore = False
    body_encoding: Any = None
    caught: dict[str, Any]

    def _put(self, queue: str, message: dict[str, Any], **_: Any) -> None:
        self.caught = message


class _CapturingTransport(virtual.Transport):
    Channel = _CapturingChannel


@lru_cache
def template(stage: str, queue: str, task: str) -> str:
    """The JSON text of a wake-up, with the three marks in place of name, id and time.

    The same arguments give the same text on every host and in every process: it names neither.
    """
    app: Any = Celery(stage, set_as_current=False)
    made = app.amqp.as_task_v2(
        ID_MARK,
        task,
        args=[NAME_MARK],
        ignore_result=True,
        origin="millstream",
        argsrepr="(...)",
        kwargsrepr="{}",
    )
    with Connection(transport=_CapturingTransport) as connection:
        channel: Any = connection.channel()
        Producer(channel).publish(
            made.body,
            exchange="",
            routing_key=queue,
            serializer="json",
            headers={**made.headers, "pushed_at": AT_MARK},
            **made.properties,
        )
        message = channel.caught
    message["properties"]["delivery_tag"] = ID_MARK
    return json.dumps(message, separators=(",", ":")).replace(f'"{AT_MARK}"', AT_MARK)


def fill(template: str, name: str, push_id: str, at_ms: int) -> str:
    """The message that a script makes of a template: the marks replaced, nothing else.

    Raises ValueError where `name` or `push_id` is not a name.
    """
    if not is_name(name) or not is_name(push_id):
        raise ValueError("a wake-up's name and id hold 1 to 512 characters without controls, quotes, \\ and %")
    # The name goes in last, so that a name that spells a mark stays what it is.
    return template.replace(ID_MARK, push_id).replace(AT_MARK, str(at_ms)).replace(NAME_MARK, name)


@lru_cache
def shape(stage: str) -> re.Pattern[str]:
    """What the scripts' own messages of a stage look like, byte for byte."""
    text = re.escape(template(stage, queue_name(stage), task_name(stage)))
    name, push_id = _NAME.pattern, r'[^"\\]{1,100}'
    for mark, kind in ((ID_MARK, push_id), (NAME_MARK, name), (AT_MARK, r"\d{1,20}")):
        text = text.replace(re.escape(mark), kind)
    return re.compile(text)


def pushed_at_ms(message: bytes) -> int | None:
    """When a message was pushed, in milliseconds of Redis time; None where it does not say so, whatever it is."""
    try:
        at = json.loads(message)["headers"]["pushed_at"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return at if isinstance(at, int) and not isinstance(at, bool) else None
