"""Dead letters: listed, shown, put back to work."""

import base64
import json
from dataclasses import asdict
from typing import Annotated, Any

import typer

from shared.outcome import STAGES
from workers.context import Context
from workers.deadletters import store
from workers.deadletters.model import Letter
from workers.ops.output import MISUSED, dump, fail, say, table, when
from workers.ops.session import session, who

app = typer.Typer(no_args_is_help=True, help="What could not be done, kept whole.")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def listed(
    stage: Annotated[str, typer.Option(help="Only letters that died in this stage (or poison).")] = "",
    reason: Annotated[str, typer.Option(help="Only letters that died for this reason.")] = "",
    channel: Annotated[str, typer.Option(help="Only letters of this channel.")] = "",
    account: Annotated[str, typer.Option(help="Only letters of this account.")] = "",
    as_json: AsJson = False,
) -> None:
    """List dead letters, the latest first."""
    if stage and stage not in (*STAGES, store.RAW):
        fail(f"no stage {stage}: there are {', '.join((*STAGES, store.RAW))}", MISUSED)
    with session() as ctx:
        letters = store.find(ctx, stage, reason, channel, account)[::-1]
    if as_json:
        dump([asdict(letter) for letter in letters])
        return
    if not letters:
        say("no dead letters" + (" that fit" if stage or reason or channel or account else ""))
        return
    columns = ("id", "stage", "reason", "account", "died", "tries", "replays", "error")
    table(
        columns,
        [(x.id, x.stage, x.reason, x.account, when(x.dead_at), x.attempts, x.replays, x.error) for x in letters],
    )
    say("`millstream dead show ID` tells more; `millstream dead replay ID` puts one back to work")


@app.command("show")
def show(
    id_: Annotated[str, typer.Argument(metavar="ID")],
    payload: Annotated[bool, typer.Option("--payload", help="Also what was kept, with people's text in it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show one dead letter: why it died and what was tried."""
    with session() as ctx:
        letter = _letter(ctx, id_)
        record: dict[str, str] = ctx.client.hgetall(ctx.keys.record(id_))
        raw = ctx.client.hget(ctx.keys.letter(id_), "raw") or ""
    rows: list[dict[str, Any]] = [json.loads(line) for line in record.get("log", "").splitlines()]
    kept = _kept(record.get("env", ""), raw) if payload else None
    if as_json:
        dump({**asdict(letter), "decisions": rows} | ({"payload": kept} if payload else {}))
        return
    for name, value in asdict(letter).items():
        if value not in ("", 0):
            say(f"{name:16} {when(value) if name.endswith('_at') else value}")
    if rows:
        table(("stage", "outcome", "reason", "at", "try"), [_cells(row) for row in rows])
    if payload:
        say(str(kept))


def _kept(envelope: str, raw: str) -> str:
    kept = envelope.encode("utf-8", "surrogateescape") or base64.b64decode(raw)
    return kept.decode("utf-8", "backslashreplace")


def _cells(row: dict[str, Any]) -> tuple[object, ...]:
    return row["stage"], row["outcome"], row["reason"], when(row["at"]), row.get("attempt", 0)


@app.command("replay")
def replay(
    id_: Annotated[str, typer.Argument(metavar="ID")],
    again: Annotated[
        bool, typer.Option("--again", help="Also where doing it again may do it twice (effect-unknown and the like).")
    ] = False,
) -> None:
    """Put a dead letter back to work where it died. What was sent stays sent, what was frozen stays frozen."""
    with session() as ctx:
        refusal = store.replay(ctx, _letter(ctx, id_), who(), again=again)
    if refusal is not None:
        fail(f"{id_} is not replayed: {refusal}")
    say(f"{id_} goes on where it died; `millstream trace {id_}` follows it")


def _letter(ctx: Context, id_: str) -> Letter:
    letter = store.get(ctx, id_)
    if letter is None:
        fail(f"no dead letter {id_}: `millstream dead list` shows those that are kept")
    return letter
