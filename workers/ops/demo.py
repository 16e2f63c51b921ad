"""`millstream demo`: a short story through real processes, and what became of each message. Nothing stays running."""

import json
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NoReturn

from rich.text import Text

from shared.redis.embedded import KINDS, Embedded, Kind
from shared.settings import load
from workers.context import Context
from workers.ops import session
from workers.ops.children import Child, end_all
from workers.ops.output import complain, console, fail, say, table
from workers.ops.story.platforms import Platforms
from workers.ops.story.scenes import (
    REFUSED_ONCE,
    SLACK_SECRET,
    TELEGRAM_SECRET,
    Scene,
    ending,
    play,
    replay,
    reply_fits,
    scenes,
)
from workers.ops.up import answers, children_of

PATIENCE_S: Final = 90.0
"""How long the whole story may take; it takes about ten seconds, on fakeredis a minute."""
LOOK_S: Final = 0.1
TAIL: Final = 30
"""Lines of the processes' log that are shown when something went wrong."""

_CONFIG: Final = """\
[redis]
url = {redis}

[ingest]
port = {port}

[metrics]
port = {metrics}

[harness]
kind = "http"
url = "{platforms}/assistant/turns"
secret = "demo"
idempotent = true
timeout_s = 20
failure_notice = ""

[[accounts]]
id = "telegram"
channel = "telegram"
self_name = "relay_bot"
credentials = {{ token = "7000000001:demo", secret = "{telegram}", api_url = "{platforms}/telegram" }}
join_s = 0

[[accounts]]
id = "slack"
channel = "slack"
self_id = "U0DEMOBOT"
credentials = {{ token = "xoxb-demo", signing_secret = "{slack}", api_url = "{platforms}/slack" }}
join_s = 0
"""


def run_demo(kinds: Sequence[Kind] = KINDS) -> int:
    """Play the story; returns 0 when every message ended as it should and nothing is left running. Raises Failed, which
    names the first expectation that was not met, and EmbeddedError where no server can be started."""
    _forget_environment()
    signal.signal(signal.SIGTERM, _ended)
    began = time.monotonic()
    say("Starting a server, ingest, a worker for each of six stages and the keeper, on this machine only …")
    with ExitStack() as leaving:
        folder = Path(leaving.enter_context(tempfile.TemporaryDirectory(prefix="millstream-demo-")))
        server = leaving.enter_context(Embedded.start(folder / "server", durable=False, kinds=kinds))
        if server.warning:
            complain(server.warning)
        platforms = Platforms(REFUSED_ONCE)
        leaving.callback(platforms.close)
        config = _write_config(folder, server.url, platforms.url)
        log = leaving.enter_context((folder / "log").open("wb"))
        settings = load(config, os.environ)
        groups = children_of(settings, config, log=log.fileno())
        children = [child for group in groups for child in group]
        leaving.callback(_end, groups)
        for child in reversed(children):
            child.start()
        try:
            _until(lambda: answers(settings) or _fallen(children), began, "ingest does not answer")
            session.config_path.set(config)
            with session.session(config) as ctx:
                token = session.current.set(ctx)
                leaving.callback(session.current.reset, token)
                story = _played(f"http://127.0.0.1:{settings.ingest.port}", ctx, platforms, children, began)
        except Exception:
            _show_tail(folder / "log")
            raise
    _nothing_left(children, server.pid)
    _tell(story, time.monotonic() - began)
    return 0


def _played(
    hooks: str, ctx: Context, platforms: Platforms, children: list[Child], began: float
) -> list[tuple[Scene, str, str]]:
    """Let every scene happen and end: the scene, how it ended, what the platform saw. Raises Failed."""
    story = scenes()
    for scene in story:
        status = play(scene, hooks, ctx)
        if status != 200:
            fail(f"the demo failed: the webhook answered {status} to “{scene.says}”")
    for scene in story:
        _until(lambda s=scene: bool(ending(s, ctx)) or _fallen(children), began, f"“{scene.says}” did not end")
        _must(scene, scene.expect, ending(scene, ctx))
    for scene in story:
        if scene.replayed:
            code, output = replay(scene, ctx)
            if code != 0:
                fail(f"the demo failed: `millstream dead replay` said: {output.strip()}")
            _until(
                lambda s=scene: ending(s, ctx)[:1] not in ([], ["dead"]) or _fallen(children),
                began, f"the replay of “{scene.says}” did not end",
            )  # fmt: skip
            _must(scene, scene.replayed, ending(scene, ctx))
    for scene in story:
        _until(reply_fits(scene, platforms), began, f"the reply to “{scene.says}” is not what it should be")
    return [(scene, *_became(scene, platforms)) for scene in story]


def _became(scene: Scene, platforms: Platforms) -> tuple[str, str]:
    ways = [scene.expect, scene.replayed] if scene.replayed else [scene.expect]
    how = " → ".join(f"{disposition} ({reason})" if disposition != reason else reason for disposition, reason in ways)
    seen = scene.seen(platforms) if scene.reply else []
    return how, seen[0] if seen else ""


def _tell(story: list[tuple[Scene, str, str]], took_s: float) -> None:
    console().print()
    table(
        ("who", "says", "what became of it"),
        [
            (
                f"{scene.who}\n{scene.where}",
                scene.says + (f"\n↳ quotes: {scene.quotes}" if scene.quotes else ""),
                f"{how}\n{scene.tells}\n" + (f"→ {reply}\n" if reply else ""),
            )
            for scene, how, reply in story
        ],
    )
    say(f"{len(story)} events, {took_s:.0f} seconds, all as expected; nothing is left running.", "bold green")
    console().print(
        Text(
            "Next:\n"
            "  millstream init      write a configuration; millstream.example.toml has every key\n"
            "  millstream check     what is missing, and what to do about it\n"
            "  millstream up        run it here; then millstream trace MESSAGE, status, dead list\n"
            "  README.md            a tour in five minutes, and how a message moves"
        )
    )


def _write_config(folder: Path, redis_url: str, platforms: str) -> Path:
    path = folder / "millstream.toml"
    port, metrics = _free_ports(2)
    text = _CONFIG.format(
        redis=json.dumps(redis_url), port=port, metrics=metrics, platforms=platforms, telegram=TELEGRAM_SECRET,
        slack=SLACK_SECRET,
    )  # fmt: skip
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
    return path


def _free_ports(count: int) -> list[int]:
    with ExitStack() as open_ones:
        probes = [open_ones.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [probe.getsockname()[1] for probe in probes]


def _until(holds: Callable[[], bool], began: float, otherwise: str) -> None:
    """Wait for a condition. Raises Failed beyond the demo's patience."""
    while not holds():
        if time.monotonic() - began > PATIENCE_S:
            fail(f"the demo failed: {otherwise} within {PATIENCE_S:g} s")
        time.sleep(LOOK_S)


def _fallen(children: list[Child]) -> bool:
    """Never true: raises Failed when a process has ended by itself."""
    for child in children:
        if not child.running:
            fail(f"the demo failed: {child.name} ended by itself")
    return False


def _must(scene: Scene, wanted: list[str], came: list[str]) -> None:
    if came != wanted:
        fail(f"the demo failed: “{scene.says}” should end {' '.join(wanted)} and ended {' '.join(came)}")


def _end(groups: list[list[Child]]) -> None:
    for group in groups:
        end_all(group)


def _nothing_left(children: list[Child], server_pid: int) -> None:
    running = [child.name for child in children if child.running]
    try:
        os.kill(server_pid, 0)
        running.append("the server")
    except ProcessLookupError:
        pass
    if running:
        fail(f"the demo failed: still running are {', '.join(running)}")


def _show_tail(log: Path) -> None:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL:]
    complain("\n".join(["the last lines of the processes' log:", *lines]))


def _forget_environment() -> None:
    """The story has its own configuration: what is set for a real installation must not change it."""
    for name in [name for name in os.environ if name.upper().startswith("MILLSTREAM_")]:
        del os.environ[name]


def _ended(_number: int, _frame: object) -> NoReturn:
    """On TERM: leave as on an error, ending everything that was started."""
    sys.exit(143)
