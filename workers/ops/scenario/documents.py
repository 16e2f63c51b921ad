"""From a checked document to a `Scenario`: every duration, offset and time becomes integer milliseconds. Pure."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, cast

from workers.ops.scenario.model import (
    DRAW,
    START_MS,
    Action,
    Advance,
    Approve,
    At,
    Burst,
    Cli,
    Fault,
    Given,
    GivenEntry,
    GivenFrozen,
    GivenLine,
    GivenSession,
    HarnessReply,
    HarnessScript,
    Http,
    PlatformAnswer,
    Receive,
    Redeliver,
    Reject,
    Replay,
    Restart,
    SaidQuote,
    Say,
    Scenario,
    Send,
    Set,
    Step,
)

Map = Mapping[str, Any]
Path = tuple["str | int", ...]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class WrongValueError(ValueError):
    """A value that the schema lets pass and that means nothing, such as the 31st of June. `path` leads to it."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(what)
        self.path = path
        self.what = what


def duration_ms(text: str) -> int:
    """`61s`, `0.5h`, `+2s`, `-40s` in milliseconds; the form was checked by the schema."""
    number = text.rstrip("mshd")
    return round(Decimal(number) * UNITS_MS[text[len(number) :]])


def time_ms(text: str, path: Path) -> int:
    """An absolute time in Unix ms. Raises WrongValueError for a day or an hour that does not exist."""
    try:
        return (datetime.fromisoformat(text) - EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError) as error:
        raise WrongValueError(path, f"{text!r} is no time: {error}") from error


def when_ms(text: str, start_ms: int, path: Path) -> int:
    """An absolute time, or an offset from the scenario's start, in Unix ms. Raises WrongValueError."""
    return start_ms + duration_ms(text) if text[0] in "+-" else time_ms(text, path)


def scenario_of(document: Map, file: str, number: int, line: Callable[[Path], int]) -> Scenario:
    """The scenario of a document that fits the schema. `line` tells where a path is. Raises WrongValueError."""
    start_ms = time_ms(document["now"], ("now",)) if "now" in document else START_MS
    judge = document.get("judge")
    harness: Map = document.get("harness", {})
    return Scenario(
        file=file,
        number=number,
        name=document["name"],
        ref=document.get("ref", ""),
        now_ms=start_ms,
        random=tuple(document.get("random", (DRAW,))),
        config=document.get("config", {}),
        given=_given(document.get("given", {}), start_ms),
        platform=tuple(_answer(answer) for answer in document.get("platform", ())),
        harness=HarnessScript(
            replies=tuple(_reply(reply) for reply in harness.get("replies", ())) or (HarnessReply(),),
            history_delay_ms=duration_ms(harness.get("history_delay", "0s")),
        ),
        verdicts=None if judge is None else tuple(judge["verdicts"]),
        steps=tuple(_step(step, n, start_ms, line(("steps", n - 1))) for n, step in enumerate(document["steps"], 1)),
        config_error=tuple(document.get("config_error", ())),
    )


def _given(given: Map, start_ms: int) -> Given:
    return Given(
        index=tuple(
            GivenEntry(
                account=entry["account"],
                scope=entry["scope"],
                text=entry["text"],
                sent_at_ms=when_ms(entry["sent_at"], start_ms, ("given", "index", n, "sent_at")),
                completed_at_ms=when_ms(entry["completed_at"], start_ms, ("given", "index", n, "completed_at")),
                ids=tuple(entry.get("ids", ())),
            )
            for n, entry in enumerate(given.get("index", ()))
        ),
        sessions=tuple(
            GivenSession(
                account=session["conversation"]["account"],
                chat=session["conversation"]["chat"],
                thread=session["conversation"].get("thread"),
                lines=tuple(
                    GivenLine(
                        role=said["role"],
                        text=said["text"],
                        at_ms=when_ms(said["at"], start_ms, ("given", "sessions", n, "messages", k, "at")),
                        turn=said.get("turn", "completed"),
                    )
                    for k, said in enumerate(session["messages"])
                ),
            )
            for n, session in enumerate(given.get("sessions", ()))
        ),
        frozen=tuple(GivenFrozen(**frozen) for frozen in given.get("frozen", ())),
    )


def _answer(answer: Map) -> PlatformAnswer:
    return PlatformAnswer(
        account=answer["account"],
        call=answer["call"],
        id=answer.get("id"),
        returns=answer.get("returns"),
        has_returns="returns" in answer,
        status=answer.get("status"),
        error=answer.get("error"),
        times=answer.get("times"),
        retry_after_ms=duration_ms(answer["retry_after"]) if "retry_after" in answer else None,
    )


def _reply(reply: str | Map) -> HarnessReply:
    if isinstance(reply, str):
        return HarnessReply(text=reply)
    asked: Map = reply.get("question") or reply.get("approval") or {}
    return HarnessReply(
        text=reply.get("text"),
        delay_ms=duration_ms(reply.get("delay", "0s")),
        error=reply.get("error"),
        question=asked.get("text"),
        options=tuple(asked.get("options", ())),
        approval="approval" in reply,
    )


def _step(step: Map, number: int, start_ms: int, line: int) -> Step:
    path: Path = ("steps", number - 1)
    action = _action(step, start_ms, path)
    at = At()
    if isinstance(action, Advance):
        at = At(offset_ms=action.ms)
    elif "at" in step:
        written: str = step["at"]
        relative = written.startswith("+")
        at = At(offset_ms=duration_ms(written)) if relative else At(time_ms=time_ms(written, (*path, "at")))
    return Step(number=number, action=action, at=at, expect=step.get("expect", {}), line=line)


def _action(step: Map, start_ms: int, path: Path) -> Action:
    name = next(key for key in step if key not in ("at", "expect"))
    value = step[name]
    match name:
        case "say":
            return _say(value, start_ms, (*path, name))
        case "burst":
            return Burst(tuple(_say(said, start_ms, (*path, name, n)) for n, said in enumerate(value)))
        case "receive":
            headers = {str(key): str(header) for key, header in value.get("headers", {}).items()}
            return Receive(value["account"], value.get("event"), headers, value.get("raw"))
        case "set":
            switches = {key: on for key, on in value.items() if key != "accounts"}
            return Set(switches, tuple(value.get("accounts", ())))
        case _:
            return _plain_action(name, value)


def _plain_action(name: str, value: Any) -> Action:
    match name:
        case "redeliver":
            return Redeliver(value["step"], value["as"])
        case "fault":
            return Fault(value["at"])
        case "send":
            return Send(value["account"], value["chat"], value["text"], value.get("thread"))
        case "restart":
            return Restart(value)
        case "cli":
            return Cli(tuple(value["args"]))
        case "http":
            return Http(value["method"], value["path"], value.get("body"), value.get("role", "operator"))
        case "replay":
            return Replay(value["filter"])
        case "approve":
            return Approve(value["draft"])
        case "reject":
            return Reject(value["draft"])
        case _:
            return Advance(duration_ms(value))


def _say(said: Map, start_ms: int, path: Path) -> Say:
    quote: Map | None = said.get("reply_to")
    plain = ("text", "name", "chat_type", "thread", "message_id", "mentions_bot", "mentions_all", "sender_is_bot")
    return Say(
        account=said["account"],
        chat=said["chat"],
        sender=said["sender"],
        mentions=tuple(said.get("mentions", ())),
        attachments=tuple(said.get("attachments", ())),
        system=said.get("system", False),
        ocr=said.get("ocr"),
        reply_to=None if quote is None else _quote(quote, start_ms, (*path, "reply_to")),
        sent_ms=when_ms(said["sent"], start_ms, (*path, "sent")) if "sent" in said else None,
        **{key: said[key] for key in plain if key in said},
    )


def _quote(quote: Map, start_ms: int, path: Path) -> SaidQuote:
    parts = {key: value for key, value in quote.items() if key not in ("sent_at", "keys")}
    sent_at = cast("str | None", quote.get("sent_at"))
    return SaidQuote(
        parts=parts,
        sent_at_ms=None if sent_at is None else when_ms(sent_at, start_ms, (*path, "sent_at")),
        keys=tuple(quote.get("keys", ())),
    )
