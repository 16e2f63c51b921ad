"""Sessions: what an assistant remembers of a conversation, for harnesses that keep no memory of their own.

A conversation's lane is bound to one session at a time. `/new` unbinds it; the session itself stays, and only its age
ends it. A session holds turns, each recorded under its turn id, so that a repeated turn is never there twice.

Data model (prefix left out):

    session:bound:LANE   hash  session, used_ms
    session:ID:turns     hash  turn id -> JSON [prompt, answer]
    session:ID:marks     hash  turn id -> "started_ms:ended_ms:roles:tokens:bytes:status", all that trimming needs
    session:ID:meta      hash  title, ended_ms (of the last turn), from_ms (older turns no longer go to the model)

Every method is a blocking call of a few commands.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast, get_args

from redis import Redis
from redis.client import Pipeline

from shared.clock import Clock
from shared.harness.port import HistoryLine, HistoryPage
from shared.redis.keys import SessionKeys

Status: TypeAlias = Literal["completed", "failed", "aborted"]

BYTES_PER_TOKEN = 3
"""The token estimate: a Chinese character is one token, English text a third too many; it errs on the short side."""

BINDING_MS = 60 * 86_400_000
"""How long an unused binding is kept: twice a session's age, after which the session is empty anyway."""


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """How much of a session is kept; the newest turn always is.

    messages, tokens (estimated, 0: no limit), size in UTF-8 bytes, age in milliseconds. An age of 30 days equals the
    outbound index's (behaviour.md, Outbound index): nobody can look further back.
    """

    messages: int = 200
    tokens: int = 0
    size_bytes: int = 1_048_576
    age_ms: int = 30 * 86_400_000


@dataclass(frozen=True, slots=True)
class Mark:
    """A turn's outline. `roles`: `u` for the user's message, `a` for the assistant's answer."""

    started_ms: int
    ended_ms: int
    roles: str
    tokens: int
    size_bytes: int
    status: Status

    def encode(self) -> str:
        """The form kept in Redis."""
        return f"{self.started_ms}:{self.ended_ms}:{self.roles}:{self.tokens}:{self.size_bytes}:{self.status}"

    @classmethod
    def decode(cls, raw: str) -> "Mark":
        """Raises ValueError for anything that `encode` did not make."""
        started, ended, roles, tokens, size, status = raw.split(":")
        if status not in get_args(Status):
            raise ValueError(f"no status of a turn: {status}")
        return cls(int(started), int(ended), roles, int(tokens), int(size), cast("Status", status))


@dataclass(frozen=True, slots=True)
class SessionTurn:
    """A completed turn, as the model is reminded of it."""

    id: str
    prompt: str
    answer: str
    ended_ms: int


def tokens_of(text: str) -> int:
    """An estimate of the tokens in `text`, without any model's vocabulary."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


def overflow(marks: Mapping[str, Mark], limits: SessionLimits, now_ms: int) -> list[str]:
    """The turn ids that have to go, so that the rest keeps the limits. The newest turn stays whatever it weighs."""
    newest_first = sorted(marks.items(), key=lambda item: (item[1].ended_ms, item[1].started_ms), reverse=True)
    messages = tokens = size = 0
    for place, (_, mark) in enumerate(newest_first):
        messages += len(mark.roles)
        tokens += mark.tokens
        size += mark.size_bytes
        full = messages > limits.messages or size > limits.size_bytes or (0 < limits.tokens < tokens)
        if place and (full or now_ms - mark.ended_ms > limits.age_ms):
            return [turn for turn, _ in newest_first[place:]]
    return []


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _pairs(raw: Any) -> dict[str, str]:
    return {_text(key): _text(value) for key, value in cast("Mapping[Any, Any]", raw).items()}


class Sessions:
    """All sessions of one Millstream. `clock` is the process's clock, which the harnesses share."""

    def __init__(self, redis: "Redis", clock: Clock, prefix: str = "ms:") -> None:
        self._redis = redis
        self.clock = clock
        self.keys = SessionKeys(prefix)

    def bound(self, lane: str) -> str | None:
        """The session that the lane is bound to now, or None. Does not count as use."""
        found = self._redis.hget(self.keys.bound(lane), "session")
        return None if found is None else _text(found)

    def bind(self, lane: str, session: str, now_ms: int) -> None:
        """Bind the lane to `session`; the session bound before stays as it is."""
        key = self.keys.bound(lane)
        pipe = self._redis.pipeline()
        pipe.hset(key, mapping={"session": session, "used_ms": now_ms})
        pipe.pexpire(key, BINDING_MS)
        pipe.execute()

    def unbind(self, lane: str) -> None:
        """Forget the binding, never the session."""
        self._redis.delete(self.keys.bound(lane))

    def title(self, session: str) -> str:
        """The session's title, given by its first turn; empty before that."""
        found = self._redis.hget(self.keys.meta(session), "title")
        return "" if found is None else _text(found)

    def append_turn(
        self,
        session: str,
        turn_id: str,
        prompt: str,
        answer: str,
        started_ms: int,
        ended_ms: int,
        status: Status = "completed",
        *,
        title: str = "",
        limits: SessionLimits | None = None,
    ) -> bool:
        """Record how a turn ended, in one transaction. True when it was written.

        A turn that is recorded as completed never changes; a failed or aborted one is replaced by a later end of the
        same turn. `title` counts only where the session has none. An empty prompt or answer is no message.
        """
        roles = ("u" if prompt else "") + ("a" if answer else "")
        size = len(f"{prompt}{answer}".encode("utf-8", "surrogatepass"))
        tokens = tokens_of(prompt) + tokens_of(answer)
        mark = Mark(started_ms, ended_ms, roles, tokens, size, status)
        kept = limits or SessionLimits()
        turns, marks_key, meta = self.keys.turns(session), self.keys.marks(session), self.keys.meta(session)

        def write(pipe: "Pipeline") -> bool:
            marks = self._marks(pipe.hgetall(marks_key))
            known = marks.get(turn_id)
            last_ms = max([ended_ms, *(m.ended_ms for m in marks.values())])
            pipe.multi()
            if known and known.status == "completed":
                return False
            marks[turn_id] = mark
            gone = overflow(marks, kept, last_ms)
            pipe.hset(turns, turn_id, json.dumps([prompt, answer], separators=(",", ":")))
            pipe.hset(marks_key, turn_id, mark.encode())
            pipe.hset(meta, "ended_ms", str(last_ms))
            if title:
                pipe.hsetnx(meta, "title", title)
            if gone:
                pipe.hdel(turns, *gone)
                pipe.hdel(marks_key, *gone)
            for key in (turns, marks_key, meta):
                pipe.pexpire(key, kept.age_ms)
            return True

        return cast("bool", self._redis.transaction(cast("Any", write), marks_key, value_from_callable=True))

    def turns(self, session: str, now_ms: int, limits: SessionLimits | None = None) -> tuple[SessionTurn, ...]:
        """The completed turns that the model is shown, oldest first, within the limits."""
        marks = self._marks(self._redis.hgetall(self.keys.marks(session)))
        if not marks:
            return ()
        floor = self._redis.hget(self.keys.meta(session), "from_ms")
        from_ms = -1 if floor is None else int(_text(floor))
        gone = set(overflow(marks, limits or SessionLimits(), now_ms))
        chosen = sorted(
            (mark.ended_ms, turn)
            for turn, mark in marks.items()
            if mark.status == "completed" and mark.ended_ms > from_ms and turn not in gone
        )
        texts = self._texts(session, [turn for _, turn in chosen])
        return tuple(SessionTurn(turn, *texts[turn], ended) for ended, turn in chosen if turn in texts)

    def skip_until(self, session: str, ended_ms: int) -> None:
        """Show the model no turn any more that ended at `ended_ms` or before. Nothing is deleted: lookback still reads
        them."""
        self._redis.hset(self.keys.meta(session), "from_ms", str(ended_ms))

    def page(self, session: str, before_ms: int, limit: int) -> HistoryPage:
        """At most `limit` lines older than `before_ms`, newest first.

        Lines of one millisecond are never torn apart, since the next page starts below the last line's time; a page is
        rather shorter than `limit`.
        """
        lines = [
            (at_ms, role, turn, mark)
            for turn, mark in self._marks(self._redis.hgetall(self.keys.marks(session))).items()
            for role, at_ms in (("u", mark.started_ms), ("a", mark.ended_ms))
            if role in mark.roles and at_ms < before_ms
        ]
        # In one millisecond the answer is the newer line of a turn.
        lines.sort(key=lambda line: (line[0], line[3].ended_ms, line[2], line[1] == "a"), reverse=True)
        taken = lines[: max(limit, 0)]
        if len(lines) > len(taken):
            whole = [line for line in taken if line[0] != lines[len(taken)][0]]
            taken = whole or taken
        texts = self._texts(session, list({turn for _, _, turn, _ in taken}))
        return HistoryPage(
            tuple(
                HistoryLine(
                    role="assistant" if role == "a" else "user",
                    text=texts[turn][1 if role == "a" else 0],
                    at_ms=at_ms,
                    turn=mark.status,
                    turn_started_ms=mark.started_ms,
                    turn_ended_ms=mark.ended_ms,
                    last_of_turn=mark.roles[-1] == role,
                )
                for at_ms, role, turn, mark in taken
                if turn in texts
            ),
            more=len(lines) > len(taken),
        )

    def _texts(self, session: str, turns: list[str]) -> dict[str, tuple[str, str]]:
        if not turns:
            return {}
        raw = cast("list[Any]", self._redis.hmget(self.keys.turns(session), turns))
        texts: dict[str, tuple[str, str]] = {}
        for turn, value in zip(turns, raw, strict=True):
            # A turn that was trimmed between the two reads is simply no longer there.
            if value is not None:
                prompt, answer = json.loads(value)
                texts[turn] = (prompt, answer)
        return texts

    @staticmethod
    def _marks(raw: Any) -> dict[str, Mark]:
        return {turn: Mark.decode(mark) for turn, mark in _pairs(raw).items()}
