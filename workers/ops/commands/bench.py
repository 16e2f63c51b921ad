"""What a message costs on this machine."""

from typing import Annotated

import typer

from workers.ops.output import DONE, FAILED, dump, say, table


def bench(
    messages: Annotated[int, typer.Option(min=1, help="Messages of each kind.")] = 1000,
    conversations: Annotated[int, typer.Option(min=1, help="Conversations that they are spread over.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure throughput, and Redis commands and bytes per message, with a server and workers of its own."""
    from workers.ops.bench import run_bench

    figures = run_bench(messages, conversations)
    if as_json:
        dump([one.to_dict() for one in figures])
    else:
        table(
            ("kind", "messages", "seconds", "a second", "commands each", "bytes each", "ended otherwise", "left"),
            [
                (f.kind, f.messages, f.seconds, f.per_second, f.commands, f.bytes, f.other, f.left) for f in figures
            ],
        )  # fmt: skip
    good = not any(one.other or one.left for one in figures)
    if not good:
        say("some messages did not end as they should: the figures say nothing")
    raise typer.Exit(DONE if good else FAILED)
