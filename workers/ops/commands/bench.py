"""How fast it is on this machine, beside others, and what a message costs."""

from typing import Annotated

import typer

from workers.ops.output import DONE, FAILED, MISUSED, complain, console, dump, fail, say, table


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: about two minutes instead of fifteen.")] = False,
    only: Annotated[list[str] | None, typer.Option(metavar="SCENE", help="This scene; may be repeated.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure our pipeline beside bare Celery, Dramatiq, taskiq and Starlette, with servers and workers of its own.

    The others are installed once, each into a virtual environment of its own in the user's cache.
    """
    from workers.ops.bench.figures import COLUMNS, Row
    from workers.ops.bench.run import run_bench
    from workers.ops.bench.scenes import SCENES
    from workers.ops.bench.sizes import FULL, QUICK

    wanted = only or []
    if unknown := [name for name in wanted if name not in SCENES]:
        fail(f"no scene {unknown[0]}: there are {', '.join(SCENES)}", MISUSED)
    with console(stderr=True).status("measuring") as status:

        def known(row: Row) -> None:
            ours = f"{row.ours:,.1f} {row.unit}" if row.ours is not None else row.unmeasured
            complain(f"{row.what}: {ours}")

        report = run_bench(QUICK if quick else FULL, wanted, lambda text: status.update(text), known)
    if as_json:
        dump(report.to_dict())
    else:
        table(COLUMNS, [row.cells() for row in report.rows])
        machine = f"{report.cores} cores, load {report.load} before, Python {report.python}, {report.server}"
        say(f"{machine}, {report.seconds:.0f} s")
        say("Ratios hold within this run; rates say something about this machine only.")
    if not report.sound:
        complain("messages were lost, doubled, reordered or dropped: the rates say nothing")
    raise typer.Exit(DONE if report.sound else FAILED)
