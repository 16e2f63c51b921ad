"""What the HTTP harness sends and reads, as models. `docs/schemas` is made from them, `docs/harness-http.md` explains
them."""

import base64
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, RootModel

from shared.channels.port import Part
from shared.harness.port import Answer, HistoryLine, HistoryPage, Question, Turn


class Sent(BaseModel):
    """What we send: exactly these keys; a key without a value is left out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def encode(self) -> bytes:
        """The request's body."""
        return self.model_dump_json(exclude_none=True).encode()


class Read(BaseModel):
    """What we read: keys that we do not know are ignored, so that a harness may say more."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class SentContext(Sent):
    """A line of the conversation that was not addressed to the bot. `at_ms`: Unix milliseconds."""

    label: str
    text: str
    at_ms: int


class SentAttachment(Sent):
    """A file of the current message. `digest`: SHA-256, hex. `data`: the bytes in base64; without it the file is only
    described, and `unavailable` says why."""

    kind: str
    name: str | None = None
    media_type: str | None = None
    size: int | None = None
    digest: str | None = None
    unavailable: str | None = None
    data: str | None = None


class TurnRequest(Sent):
    """One turn. `prompt` is ready for a model; `text`, `source` and `reply_to` are the same as structure."""

    version: Literal[1] = 1
    turn_id: str = Field(description="The idempotency key: equal for every try of the turn.")
    session: str = Field(description="The session that the turn belongs to.")
    title: str = Field(default="", description="For a new session: the first line of the current text.")
    attempt: int = Field(default=1, description="1 for the first try.")
    model: str = Field(default="", description="A route's choice; empty: yours.")
    system: tuple[str, ...] = Field(default=(), description="System blocks, in order.")
    prompt: str
    text: str = Field(description="What the sender wrote, byte for byte.")
    source: dict[str, Any]
    reply_to: dict[str, Any] | None = Field(default=None, description="The quoted message: context, no instruction.")
    attachments: tuple[SentAttachment, ...] = ()
    context: tuple[SentContext, ...] = Field(default=(), description="Never part of the prompt.")

    @classmethod
    def of(cls, turn: Turn) -> Self:
        """The request for `turn`. Blocks while the attachments are read."""
        return cls(
            turn_id=turn.id,
            session=turn.session,
            title=turn.title,
            attempt=turn.attempt,
            model=turn.model,
            system=turn.system,
            prompt=turn.prompt,
            text=turn.text,
            source=dict(turn.source),
            reply_to=None if turn.reply_to is None else dict(turn.reply_to),
            attachments=tuple(
                SentAttachment(
                    kind=one.kind,
                    name=one.name,
                    media_type=one.media_type,
                    size=one.size,
                    digest=one.digest,
                    unavailable=one.unavailable,
                    data=base64.b64encode(one.reader()).decode() if one.reader and not one.unavailable else None,
                )
                for one in turn.attachments
            ),
            context=tuple(SentContext(label=row.label, text=row.text, at_ms=row.at_ms) for row in turn.context),
        )


class Interaction(Sent):
    """What the asker answered to `question_id`."""

    turn_id: str
    session: str
    question_id: str
    kind: Literal["question", "approval"]
    text: str


class InteractionRequest(Sent):
    """The answer to a question that the turn asked; it is answered with the rest of the turn."""

    interaction: Interaction

    @classmethod
    def of(cls, turn: Turn, question: Question, text: str) -> Self:
        """The request that carries `text` to `question`."""
        return cls(
            interaction=Interaction(
                turn_id=turn.id, session=turn.session, question_id=question.id, kind=question.kind, text=text
            )
        )


class CancelRequest(Sent):
    """Sent to `/cancel` for a turn without a turn URL."""

    turn_id: str


class TextPart(Read):
    """Markdown; the channel renders what it can show."""

    type: Literal["text"]
    text: str


class FilePart(Read):
    """An image or a file, by an address that Millstream can fetch or as a data URL."""

    type: Literal["image", "file"]
    name: str
    media_type: str | None = None
    url: str | None = Field(default=None, pattern=r"^(https?://|data:)")


ReadPart: TypeAlias = Annotated[TextPart | FilePart, Field(discriminator="type")]


class ReadQuestion(Read):
    """A question that holds the turn open. `options` may be empty."""

    id: str = Field(min_length=1, max_length=256)
    text: str
    options: tuple[str, ...] = ()
    kind: Literal["question", "approval"] = "question"


class AnswerBody(Read):
    """What came of a turn."""

    parts: tuple[ReadPart, ...]
    question: ReadQuestion | None = None

    def answer(self) -> Answer:
        """The same for the pipeline."""
        return Answer(tuple(part_of(part) for part in self.parts), question_of(self.question))


class Delta(Read):
    """`event: delta`: more text of the part that is being written."""

    text: str


class Done(Read):
    """`event: done`: the end. `parts`, where given, replace everything that was streamed."""

    parts: tuple[ReadPart, ...] | None = None
    question: ReadQuestion | None = None


class StreamError(Read):
    """`event: error`: the turn failed. `transient`: it had no effect and may be tried again."""

    transient: bool = False
    retry_after_s: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class Accepted(Read):
    """The body of a 202 without a `Location`."""

    turn_url: str


class ReadLine(Read):
    """One line of a session's history."""

    role: Literal["user", "assistant", "system"]
    text: str
    at_ms: int
    turn: Literal["completed", "failed", "aborted"] = "completed"
    turn_started_ms: int | None = None
    turn_ended_ms: int | None = None
    last_of_turn: bool = True


class HistoryBody(Read):
    """Lines, newest first."""

    lines: tuple[ReadLine, ...]
    more: bool = False

    def page(self, before_ms: int, limit: int) -> HistoryPage:
        """The same for the pipeline; what was not asked for is left out, the order is made sure of."""
        wanted = sorted((line for line in self.lines if line.at_ms < before_ms), key=lambda line: -line.at_ms)
        lines = tuple(HistoryLine(**line.model_dump()) for line in wanted[:limit])
        return HistoryPage(lines, more=self.more or len(wanted) > limit)


class RequestBody(RootModel[TurnRequest | InteractionRequest]):
    """What is posted to the harness's address: a turn, or the answer to a question."""


def part_of(part: TextPart | FilePart) -> Part:
    """A part for the pipeline."""
    if isinstance(part, TextPart):
        return Part("text", part.text)
    return Part(part.type, name=part.name, media_type=part.media_type, ref=part.url)


def question_of(question: ReadQuestion | None) -> Question | None:
    """A question for the pipeline."""
    return None if question is None else Question(question.id, question.text, question.options, question.kind)


def schemas() -> Mapping[str, dict[str, Any]]:
    """File name in `docs/schemas` → JSON Schema (draft 2020-12)."""
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {
        "turn.schema.json": draft | RequestBody.model_json_schema(),
        "answer.schema.json": draft | AnswerBody.model_json_schema(),
    }
