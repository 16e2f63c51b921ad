"""Before anything runs: writing a configuration, and checking one."""

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from shared.settings import ConfigurationError, Settings
from workers.ops import checks
from workers.ops.checks import Finding
from workers.ops.init import starter
from workers.ops.output import DONE, FAILED, MISUSED, dump, fail, say
from workers.ops.session import (
    DEFAULT_CONFIG,
    at_server,
    chosen_config,
    config_path,
    in_a_thread,
    read_settings,
    running_url,
)


class Chosen(StrEnum):
    """Whom the bot is for."""

    TEAM = "team"
    COMPANION = "companion"
    BLANK = "blank"


def init(
    profile: Annotated[
        Chosen, typer.Option(help="team: answers in groups. companion: talks with its owner.")
    ] = Chosen.BLANK,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write a commented millstream.toml that runs at once."""
    path: Path = config_path.get() or DEFAULT_CONFIG
    if path.exists() and not force:
        fail(f"{path} is there already: it is replaced only with --force", MISUSED)
    path.write_text(starter(profile.value), encoding="utf-8")
    say(f"{path} is written; now `millstream check`, then `millstream up`")


def check(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Validate the configuration and reach what it names; every line says what to fix. Exits with 1 on an error."""
    findings = _findings()
    good = all(one.severity != "error" for one in findings)
    if as_json:
        dump({"ok": good, "findings": [asdict(one) for one in findings]})
    else:
        for one in findings:
            style = {"ok": "green", "warning": "yellow", "error": "red"}[one.severity]
            say(f"{one.severity:8} {one.path}: {one.text}" + (f": {one.fix}" if one.fix else ""), style)
    raise SystemExit(DONE if good else FAILED)


def _findings() -> list[Finding]:
    path = chosen_config()
    try:
        settings = read_settings(path)
    except ConfigurationError as error:
        return [Finding("error", str(path or "environment"), line) for line in error.errors]
    findings = [Finding("ok", str(path or "no file"), _counted(settings, path))]
    findings += checks.of_settings(settings)
    url = settings.redis.url or running_url(path)
    findings += checks.of_redis(at_server(settings, url) if url else settings)
    findings += checks.of_harnesses(settings)
    return findings + in_a_thread(lambda: checks.of_channels(settings))


def _counted(settings: Settings, path: Path | None) -> str:
    where = "" if path else "; `millstream init` writes one"
    return f"{len(settings.accounts)} accounts, {len(settings.routes)} routes{where}"
