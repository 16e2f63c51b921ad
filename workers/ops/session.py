"""How a command reaches what it works on: the configuration, the server, a context. A scenario gives its own."""

import getpass
import json
import os
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final, TypeVar

from shared.configuration import Versions
from shared.process import build
from shared.redis.client import connect
from shared.settings import Settings, load
from workers.context import Context
from workers.ops.output import fail
from workers.process import context

T = TypeVar("T")

DEFAULT_CONFIG: Final = Path("millstream.toml")
FOLDER: Final = ".millstream"
"""Beside the configuration: what `millstream up` keeps, its server's data among it."""

current: ContextVar[Context | None] = ContextVar("current", default=None)
"""The context that commands use instead of one of their own; a scenario's `cli` step sets it."""

config_path: ContextVar[Path | None] = ContextVar("config_path", default=None)
"""The global option `--config`; None: `DEFAULT_CONFIG` if it is there."""


def chosen_config() -> Path | None:
    """The file to read: what `--config` names (whether it is there or not), the default one, or None."""
    chosen = config_path.get()
    if chosen is not None:
        return chosen
    return DEFAULT_CONFIG if DEFAULT_CONFIG.exists() else None


def read_settings(path: Path | None = None) -> Settings:
    """Settings from `path`, or else the chosen file, with secret files and environment. Raises ConfigurationError."""
    return load(path or chosen_config(), os.environ)


def folder_of(config: Path | None) -> Path:
    """Where `millstream up` keeps its things for this configuration file."""
    return (config or DEFAULT_CONFIG).absolute().parent / FOLDER


def server_file(config: Path | None) -> Path:
    """Where a running `millstream up` says how its own server is reached; it holds a password."""
    return folder_of(config) / "server.json"


def with_server(settings: Settings, config: Path | None) -> Settings:
    """The settings with the address of the running `up`'s own server where they name none. Raises Failed."""
    if settings.redis.url:
        return settings
    url = running_url(config)
    if not url:
        fail("redis.url is empty and no `millstream up` runs here: start it, or set redis.url to your server's address")
    return at_server(settings, url)


def at_server(settings: Settings, url: str) -> Settings:
    """The settings with another `redis.url`."""
    return settings.model_copy(update={"redis": settings.redis.model_copy(update={"url": url})})


def running_url(config: Path | None) -> str:
    """The address of the server that a running `up` of this folder has started, or ''. Raises Failed."""
    try:
        return str(json.loads(server_file(config).read_text(encoding="utf-8"))["url"])
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, LookupError):
        fail(f"{server_file(config)} cannot be read: restart `millstream up`, or set redis.url")


@contextmanager
def session(config: Path | None = None) -> Generator[Context]:
    """A context for one command. Nothing is changed by opening it. Raises Failed when there is no server, and
    ConfigurationError."""
    given = current.get()
    if given is not None:
        yield given
        return
    path = config or chosen_config()
    settings = with_server(read_settings(path), path)
    client = connect(settings.redis.url)
    try:
        yield context(build(settings, client=client, starting=False), "cli")
    finally:
        client.close()


def versions_of(ctx: Context) -> Versions:
    """The configuration's versions, as this context's process would read them."""
    return Versions(ctx.client, ctx.keys, ctx.settings)


def who() -> str:
    """Who is at the keyboard, for audit records."""
    try:
        return f"cli:{getpass.getuser()}"
    except (OSError, KeyError):  # no name for this user id, as in many containers
        return "cli"


def in_a_thread(work: Callable[[], T]) -> T:
    """Run what needs a loop of its own: a scenario calls commands from inside its loop."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def invoke(args: list[str]) -> tuple[int, str]:
    """Run one command line in this process. Returns its exit code and what it printed, stderr included."""
    from typer.testing import CliRunner

    from workers.ops.cli import app

    result = CliRunner().invoke(app, args)
    return result.exit_code, result.output
