"""A streamed answer: server-sent events put together to an `Answer`. Pure: bytes in, an answer out."""

import codecs
import re
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from shared.channels.port import Part
from shared.errors import Malformed, Transient
from shared.harness.http_wire import Delta, Done, FilePart, ReadPart, StreamError, TextPart, part_of, question_of
from shared.harness.port import Answer, HarnessRefused
from shared.harness.replies import ANSWER_BYTES

ANY_PART: TypeAdapter[TextPart | FilePart] = TypeAdapter(ReadPart)

LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event: its name (`message` where none was given) and its data."""

    name: str
    data: str


class EventDecoder:
    """Server-sent events out of chunks that may be cut anywhere (WHATWG HTML, 9.2 Server-sent events).

    An event that the stream does not end with a blank line never counts. Raises `shared.errors.Malformed` for bytes
    that are not UTF-8 and for an event of more than 1 MiB.
    """

    def __init__(self) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8-sig")("strict")
        self._after_cr = False
        self._rest: list[str] = []
        self._name = ""
        self._data: list[str] = []
        self._rest_size = self._data_size = 0

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that `chunk` completes."""
        try:
            text = self._utf8.decode(chunk)
        except UnicodeDecodeError as error:
            raise Malformed("the stream is not UTF-8") from error
        if not text:
            return []
        if self._after_cr:
            text = text.removeprefix("\n")
        self._after_cr = text.endswith("\r") if text else False
        *lines, rest = LINE_END.split(text)
        events: list[ServerEvent] = []
        for line in lines:
            whole = "".join((*self._rest, line))
            self._rest.clear()
            self._rest_size = 0
            event = self._line(whole)
            if event:
                events.append(event)
        self._rest.append(rest)
        self._rest_size += len(rest)
        self._bound()
        return events

    def _bound(self) -> None:
        if self._rest_size + self._data_size > ANSWER_BYTES:
            raise Malformed("an event of the stream is larger than 1 MiB")

    def _line(self, line: str) -> ServerEvent | None:
        if line:
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                self._name = value
            elif field == "data":
                self._data.append(value)
                self._data_size += len(value) + 1  # its line end counts: empty lines without end are not free
                self._bound()
            return None
        # A name alone is an event too, other than in the standard: `event: done` needs no data.
        known = bool(self._data or self._name)
        event = ServerEvent(self._name or "message", "\n".join(self._data)) if known else None
        self._name, self._data_size = "", 0
        self._data.clear()
        return event


class StreamedAnswer:
    """Collects events until `done`. Deltas in a row are one text part; unknown events are ignored."""

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._text: list[str] = []
        self._size = 0

    def take(self, event: ServerEvent) -> Answer | None:
        """The answer once it is complete. Raises HarnessRefused for an invalid event or a definite failure, Transient
        for a failure that had no effect."""
        try:
            match event.name:
                case "delta":
                    self._grow(len(event.data))
                    self._text.append(Delta.model_validate_json(event.data).text)
                case "part":
                    self._grow(len(event.data))
                    self._close_text()
                    self._parts.append(part_of(ANY_PART.validate_json(event.data)))
                case "done":
                    return self._finish(Done.model_validate_json(event.data or "{}"))
                case "error":
                    failure = StreamError.model_validate_json(event.data)
                    if failure.transient:
                        raise Transient("the harness failed within its stream", failure.retry_after_s)
                    raise HarnessRefused("the harness refused within its stream")
                case _:
                    pass
        except ValidationError:
            raise HarnessRefused(f"the event {event.name} of the stream is invalid") from None
        return None

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > ANSWER_BYTES:
            raise HarnessRefused("the answer is larger than 1 MiB")

    def _close_text(self) -> None:
        if self._text:
            self._parts.append(Part("text", "".join(self._text)))
            self._text.clear()

    def _finish(self, done: Done) -> Answer:
        self._close_text()
        parts = self._parts if done.parts is None else [part_of(part) for part in done.parts]
        return Answer(tuple(parts), question_of(done.question))
