"""The numbered versions of the shared configuration: applied, shown, compared, rolled back. Secrets stay masked."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from shared.settings import PROCESS_KEYS, Settings, load, problems, shared_part, with_shared_part
from workers.context import Context
from workers.ops.output import MISUSED, complain, dump, fail, say, table, when
from workers.ops.session import read_settings, session, versions_of, who

app = typer.Typer(no_args_is_help=True, help="The shared configuration, in numbered versions.")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("apply")
def apply(file: Annotated[Path, typer.Argument(help="A millstream.toml; the environment adds to it as ever.")]) -> None:
    """Make a file the version in force; every process follows it within a second."""
    settings = load(file, os.environ)
    found = problems(settings)
    for one in found:
        complain(f"{one.severity}: `{one.path}`: {one.text}: {one.fix}")
    if any(one.severity == "error" for one in found):
        fail(f"{file} is not applied: correct the errors above", MISUSED)
    with session() as ctx:
        fixed = int(ctx.client.get(ctx.keys.partitions) or settings.pipeline.partitions)
        if settings.pipeline.partitions != fixed:
            fail(f"pipeline.partitions was fixed at the first start: set it to {fixed}", MISUSED)
        before = ctx.config.version
        version = versions_of(ctx).apply(settings, who(), ctx.now_ms())
    say(f"version {version} is in force" if version != before else f"nothing changed: version {version} stays in force")


@app.command("show")
def show(
    number: Annotated[int | None, typer.Argument(help="A version; without it the one in force.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show a version and list those that are kept. Secrets are masked."""
    with session() as ctx:
        version = ctx.config.version if number is None else number
        settings = _version(ctx, version)
        history = versions_of(ctx).history()
    shown = _masked(settings)
    if as_json:
        dump({"version": version, "config": shown, "versions": history})
        return
    say(f"version {version}", "bold")
    for path, value in _flat(shown):
        say(f"{path} = {value!r}")
    if number is None:
        table(
            ("version", "applied", "by"),
            [(row["version"], when(row["at"]), row["who"]) for row in history],
        )


@app.command("diff")
def diff(
    a: Annotated[int | None, typer.Argument(help="A version; without it the one in force.")] = None,
    b: Annotated[
        int | None, typer.Argument(help="Another; without it the one in force, or without A your file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what differs between two versions, or between the version in force and your file."""
    with session() as ctx:
        old = _version(ctx, ctx.config.version if a is None else a)
        if a is None:
            new = with_shared_part(old, shared_part(read_settings()))
        else:
            new = _version(ctx, ctx.config.version if b is None else b)
    rows = list(_differences(old, new))
    if as_json:
        dump([{"path": path, "old": before, "new": after} for path, before, after in rows])
        return
    for path, before, after in rows:
        say(f"{path}: {_or_absent(before)} → {_or_absent(after)}")
    if not rows:
        say("no difference")


@app.command("rollback")
def rollback(number: Annotated[int, typer.Argument(help="The version to go back to.")]) -> None:
    """Put an old version in force again, as a new one."""
    with session() as ctx:
        _version(ctx, number)
        version = versions_of(ctx).rollback(number, who(), ctx.now_ms())
    say(f"version {version} is in force, equal to version {number}")


def _version(ctx: Context, number: int) -> Settings:
    if number == 0:  # nothing was ever started: the file itself
        return ctx.settings
    kept = [int(row["version"]) for row in versions_of(ctx).history()]
    if number not in kept:
        listed = ", ".join(map(str, kept)) or "none"
        fail(f"version {number} is not kept; kept are {listed}")
    return versions_of(ctx).get(number)


def _masked(settings: Settings) -> dict[str, Any]:
    """The shared keys that were written, as they may be shown."""
    data = settings.model_dump(mode="json", exclude_unset=True)
    for key in PROCESS_KEYS:
        name, _, below = key.partition(".")
        if not below:
            data.pop(name, None)
        elif isinstance(data.get(name), dict):
            data[name].pop(below, None)
    return {name: value for name, value in data.items() if value != {}}


def _differences(old: Settings, new: Settings) -> Iterator[tuple[str, Any, Any]]:
    """Path, old and new value as they may be shown. Compared in clear, so that a new secret is a difference."""
    clear_old, clear_new = dict(_flat(shared_part(old))), dict(_flat(shared_part(new)))
    shown_old, shown_new = dict(_flat(_masked(old))), dict(_flat(_masked(new)))
    for path in dict.fromkeys([*clear_old, *clear_new]):
        if clear_old.get(path) != clear_new.get(path):
            yield path, shown_old.get(path), shown_new.get(path)


def _flat(value: object, path: str = "") -> Iterator[tuple[str, Any]]:
    """Leaves with their paths; an account is named by its id, so that a moved one is no difference."""
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[str, object]", value).items():
            yield from _flat(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in cast("list[object]", value)):
        for number, item in enumerate(cast("list[Mapping[str, object]]", value)):
            yield from _flat(item, f"{path}[{item.get('id', number)}]")
    else:
        yield path, list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value


def _or_absent(value: Any) -> str:
    return "not set" if value is None else repr(value)
