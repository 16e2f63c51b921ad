"""`millstream bench`: what a message costs on this machine, through real worker processes and a server of its own.

Absolute figures say something about this machine only; Redis commands and bytes per message hold anywhere.
"""

import asyncio
import json
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from ingest.publisher import Publisher
from shared.message import Message
from shared.process import Process, build
from shared.redis.embedded import Embedded
from shared.settings import Settings, load
from workers.ops.children import Child, end_all
from workers.ops.up import children_of

ACCOUNT: Final = "bench"
BATCH: Final = 64
"""Messages that one accept call takes."""
LONGEST_S: Final = 300.0
"""A run that has not ended by then is told as such."""
LOOK_S: Final = 0.05
IDLE: Final = frozenset({"brpop", "info", "ping", "time", "client|setinfo", "hello"})
"""Commands of idle processes: polls, beats, connections."""


@dataclass(frozen=True, slots=True)
class Figures:
    """One run. `commands` and `bytes` are per message. `other`: messages that ended otherwise than `kind`; `left`:
    those without an end. Both must be 0."""

    kind: str
    messages: int
    seconds: float
    per_second: float
    commands: float
    bytes: int
    other: int
    left: int

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self)


def run_bench(messages: int, conversations: int, folder: Path | None = None) -> list[Figures]:
    """Measure answered and silenced messages. Starts and ends its own server and processes."""
    with (
        tempfile.TemporaryDirectory() as made,
        Embedded.start(folder or Path(made), durable=False) as server,
        (Path(made) / "workers.log").open("wb") as log,
    ):
        toml = Path(made) / "millstream.toml"
        settings = _settings(server.url, conversations, toml)
        process = build(settings)
        children = [c for group in children_of(settings, toml, log=log.fileno())[1:] for c in group]
        try:
            for child in children:
                child.start()
            _warm_up(process, settings, children)
            return [_run(process, settings, kind, messages, conversations) for kind in ("answered", "silenced")]
        finally:
            end_all(children, lambda: False)
            process.client.close()


def _settings(url: str, conversations: int, toml: Path) -> Settings:
    # Members: a guest has one turn at a time, and the rest of a burst would be throttled instead of answered.
    members = json.dumps([f"answered-{n}" for n in range(-1, conversations)])
    toml.write_text(
        f"""[harness]
failure_notice = ""
[notices]
queued = ""
[pipeline]
lane_max = 1000000
[[accounts]]
id = "{ACCOUNT}"
channel = "mock"
direct_per_minute = 0
join_s = 0
ack = "none"
members = {members}
""",
        encoding="utf-8",
    )
    return load(toml, {"MILLSTREAM_REDIS__URL": url})


def _message(kind: str, number: int, conversation: int) -> Message:
    private = kind == "answered"
    chat = f"{kind}-{conversation}"
    return Message(
        channel="mock",
        account=ACCOUNT,
        message_id=f"{kind}-{number}",
        keys=(f"{chat}:{kind}-{number}",),
        chat_id=chat,
        chat_type="private" if private else "group",
        sender_id=chat if private else f"member-{number % 7}",
        text="this is a message of an ordinary length, as people write them",
        mentions_bot=None if private else False,
    )


def _warm_up(process: Process, settings: Settings, children: list[Child]) -> None:
    """One message through every stage: all processes are up when it has ended."""
    _publish(process, settings, [_message("answered", -1, -1)])
    if _wait(process) or not all(child.running for child in children):
        raise TimeoutError("the workers did not come up")


def _run(process: Process, settings: Settings, kind: str, messages: int, conversations: int) -> Figures:
    client = process.client
    made = [_message(kind, n, n % conversations) for n in range(messages)]
    bytes_before, commands_before = int(client.info("memory")["used_memory"]), _commands(process)
    started = time.perf_counter()
    ids = _publish(process, settings, made)
    left = _wait(process)
    seconds = time.perf_counter() - started
    commands = (_commands(process) - commands_before) / messages
    grown = int(client.info("memory")["used_memory"]) - bytes_before
    with client.pipeline(transaction=False) as pipe:
        for id_ in ids:
            pipe.hget(process.keys.record(id_), "disposition")
        other = sum(word != kind for word in pipe.execute()) - left
    return Figures(
        kind,
        messages,
        round(seconds, 2),
        round(messages / seconds, 1),
        round(commands, 1),
        grown // messages,
        other,
        left,
    )


def _publish(process: Process, settings: Settings, messages: list[Message]) -> list[str]:
    async def all_of_them() -> list[str]:
        clock, ids = process.clock, list[str]()
        publisher = Publisher(process.client, process.scripts, lambda: settings, clock.now_ms, process.partitions)
        for first in range(0, len(messages), BATCH):
            accepted = await publisher.accept(messages[first : first + BATCH], clock.now_ms())
            ids += accepted.ids
        return ids

    return asyncio.run(all_of_them())


def _wait(process: Process) -> int:
    """Until nothing is under way any more; how many still are when time is up."""
    deadline = time.monotonic() + LONGEST_S
    while (left := int(process.client.hget(process.keys.depth, "*") or 0)) and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    return left


def _commands(process: Process) -> int:
    """Commands that the server ran, those inside scripts included, without what idle processes ask again and again."""
    stats: dict[str, dict[str, int]] = process.client.info("commandstats")
    return sum(int(row["calls"]) for name, row in stats.items() if name.removeprefix("cmdstat_") not in IDLE)
