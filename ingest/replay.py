"""Saved events from a file, sent through the pipeline as if they came now (`millstream replay FILE`).

The file is JSON Lines; each line is an object with `account`, `event` (what the platform sent, parsed), and optionally
`headers` (kept for the reader; no signature is checked, since the operator vouches for the file) and `at` (Unix
milliseconds: the time of receipt that rules with windows see; absent: now).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ingest.intake import count_received
from ingest.port import Overloaded, PublisherPort, Unavailable
from shared.channels.body import parse_json
from shared.channels.port import Channel, Json
from shared.clock import Clock
from shared.errors import Malformed, Refused
from shared.message import Message
from shared.retry import RetryPolicy, Rng, backoff_s
from shared.settings import AccountSettings

MAX_LINE: Final = 4_194_304
"""Longest line in bytes: four times the largest body that a webhook takes by default, since saving adds escapes."""
TRIES: Final = 5
"""Tries while the store does not answer: `pipeline.retry.attempts`' default. A replay is run by a person who waits."""


@dataclass(frozen=True, slots=True)
class SavedEvent:
    """One readable line. `where` is `file:line`; `at_ms` None: now."""

    where: str
    account: str
    event: Json
    headers: Mapping[str, str]
    at_ms: int | None


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is no event, with what is wrong, never with what it holds."""

    where: str
    problem: str

    def __str__(self) -> str:
        return f"{self.where}: {self.problem}"


@dataclass(slots=True)
class Summary:
    """What a replay did. `events` counts lines that were published, `ids` are the envelopes made of them."""

    events: int = 0
    silent: int = 0
    ids: list[str] = field(default_factory=list[str])
    bad: list[BadLine] = field(default_factory=list[BadLine])


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    account: str = Field(min_length=1)
    event: Json
    headers: dict[str, str] = {}
    at: int | None = Field(default=None, ge=0, le=253_402_300_799_999)  # the end of the year 9999


def read_events(path: Path) -> Iterator[SavedEvent | BadLine]:
    """The lines of `path` in order; one that cannot be read is told and the next ones go on. Raises OSError."""
    with path.open("rb") as file:
        number = 0
        while raw := file.readline(MAX_LINE + 1):
            number += 1
            where = f"{path}:{number}"
            if len(raw) > MAX_LINE:
                while raw and not raw.endswith(b"\n"):
                    raw = file.readline(MAX_LINE)
                yield BadLine(where, f"the line is longer than {MAX_LINE} bytes")
            elif raw.strip():
                yield _read(where, raw)


def _read(where: str, raw: bytes) -> SavedEvent | BadLine:
    try:
        line = _Line.model_validate(parse_json(raw))
    except Malformed as error:
        return BadLine(where, str(error).replace("the body", "the line"))
    except ValidationError as error:
        faults = sorted({f"{'.'.join(map(str, e['loc'])) or 'line'}: {e['type']}" for e in error.errors()})
        return BadLine(where, f"not a saved event ({'; '.join(faults)[:300]})")
    return SavedEvent(where, line.account, line.event, line.headers, line.at)


class Replay:
    """Publishes saved events one after the other.

    `account_named` looks an account up, `channel_named` its channel (raises Refused for one that is not built).
    `policy` and `rng` time the tries while the store does not answer.
    """

    def __init__(
        self,
        account_named: Callable[[str], AccountSettings | None],
        channel_named: Callable[[str], Channel],
        publisher: PublisherPort,
        clock: Clock,
        policy: RetryPolicy,
        rng: Rng,
    ) -> None:
        self._account_named = account_named
        self._channel_named = channel_named
        self._publisher = publisher
        self._clock = clock
        self._policy = policy
        self._rng = rng

    async def run(self, path: Path, rate: float, progress: Callable[[Summary], None] = lambda _: None) -> Summary:
        """Replay `path` at no more than `rate` events a second (0: unbounded). `progress` is called after each line.

        A backlog that is full is waited for. Raises OSError, and Unavailable when the store stays away; what was
        published before then is in the pipeline, and replaying it again only makes duplicates.
        """
        summary = Summary()
        started = self._clock.monotonic()
        for item in read_events(path):
            if isinstance(item, BadLine):
                summary.bad.append(item)
            else:
                if rate > 0:
                    ahead = started + (summary.events + summary.silent) / rate - self._clock.monotonic()
                    if ahead > 0:
                        await self._clock.sleep(ahead)
                await self._one(item, summary)
            progress(summary)
        return summary

    async def _one(self, saved: SavedEvent, summary: Summary) -> None:
        account = self._account_named(saved.account)
        if account is None:
            summary.bad.append(BadLine(saved.where, "no account with this id: add it to the configuration"))
            return
        try:
            channel = self._channel_named(account.channel)
        except Refused as error:
            summary.bad.append(BadLine(saved.where, str(error)))
            return
        try:
            messages = channel.normalise(saved.event, account)
        except Malformed as error:
            summary.bad.append(BadLine(saved.where, str(error)))
            return
        count_received(account.channel, messages)
        if not messages:
            summary.silent += 1
            return
        summary.ids += await self._accept(messages, saved.at_ms)
        summary.events += 1

    async def _accept(self, messages: list[Message], at_ms: int | None) -> tuple[str, ...]:
        failed = 0
        while True:
            try:
                accepted = await self._publisher.accept(messages, self._clock.now_ms() if at_ms is None else at_ms)
            except Overloaded as error:
                await self._clock.sleep(error.retry_after_s)
            except Unavailable:
                failed += 1
                if failed == TRIES:
                    raise
                await self._clock.sleep(backoff_s(failed, self._policy, self._rng))
            else:
                return accepted.ids
