"""The state of everything at a glance."""

from dataclasses import asdict
from typing import Annotated, Any

import typer
from redis import exceptions as redis_errors

from shared.outcome import STAGES, WAITS
from workers.context import Context
from workers.deadletters.store import RAW
from workers.moves import slots
from workers.ops.output import dump, say, table
from workers.ops.session import session


def status(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show the server, the switches, what waits where, and the dead letters."""
    with session() as ctx:
        state = gathered(ctx)
    if as_json:
        dump(state)
        return
    server, switches = state["server"], state["switches"]
    say(f"server         {server['version'] or 'fakeredis'}, {server['used_bytes'] // 1_048_576} MiB used")
    say(f"configuration  version {state['configuration']}, {len(state['accounts'])} accounts")
    on = [name.replace("_", "-") for name, value in switches.items() if value]
    say(f"switches       {', '.join(on) or 'none is on'}")
    say(f"keeper         {'elected' if state['keeper'] else 'none: retries, timers and lost work wait for one'}")
    say(f"under way      {state['live']} messages, {state['running']} turns run, {state['due']} wait for a time")
    table(
        ("stage", "waiting", "dead"),
        [*((stage, state["queued"][stage], state["dead"][stage]) for stage in STAGES), (RAW, "", state["dead"][RAW])],
    )
    parked = {why: count for why, count in state["parked"].items() if count}
    if parked:
        say("parked         " + ", ".join(f"{count} for {why}" for why, count in parked.items()))
    table(
        ("account", "channel", "transport", "under way"),
        [(a["id"], a["channel"], a["transport"], a["live"]) for a in state["accounts"]],
    )


def gathered(ctx: Context) -> dict[str, Any]:
    """Everything that `status --json` prints."""
    client, keys = ctx.client, ctx.keys
    depth: dict[str, str] = client.hgetall(keys.depth)
    harnesses = slots(ctx.settings)
    return {
        "server": _server(ctx),
        "configuration": ctx.config.version,
        "switches": asdict(ctx.switches.read()),
        "keeper": bool(client.hexists(keys.held, "keeper")),
        "live": int(depth.get("*", 0)),
        "running": sum(client.zcard(keys.at("running", name)) for name in harnesses),
        "due": client.zcard(keys.due),
        "queued": {stage: _queued(ctx, stage, list(harnesses)) for stage in STAGES},
        "parked": {why: client.zcard(keys.at(f"parked:{why}")) for why in WAITS},
        "dead": {stage: client.zcard(keys.letters(stage)) for stage in (*STAGES, RAW)},
        "accounts": [
            {"id": a.id, "channel": a.channel, "transport": a.used_transport, "live": int(depth.get(a.id, 0))}
            for a in ctx.settings.accounts
        ],
    }


def _server(ctx: Context) -> dict[str, Any]:
    try:
        info: dict[str, Any] = ctx.client.info()
    except redis_errors.ResponseError:
        return {"version": "", "used_bytes": 0}  # fakeredis knows no INFO
    version = info.get("valkey_version") or info.get("redis_version", "")
    return {"version": str(version), "used_bytes": int(info.get("used_memory", 0))}


def _queued(ctx: Context, stage: str, harnesses: list[str]) -> int:
    keys = ctx.keys
    if stage in ("admission", "engagement"):
        parts = int(ctx.client.get(keys.partitions) or 0)
        names = [keys.at(stage, str(part)) for part in range(parts)]
    elif stage == "dispatch":
        names = [keys.at(stage, name) for name in harnesses]
    else:
        names = [keys.at(stage)]
    with ctx.client.pipeline(transaction=False) as pipe:
        for name in names:
            pipe.zcard(name)
        return sum(pipe.execute())
