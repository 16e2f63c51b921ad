"""Scenarios: what must come of messages, written by an operator, run against the real stages."""

from pathlib import Path
from typing import Annotated

import typer

from workers.ops.output import complain, say


def scenario(
    paths: Annotated[list[Path], typer.Argument(help="Files, or folders with everything below them.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a scenario.")] = False,
    select: Annotated[str, typer.Option("-k", help="Only scenarios whose name or reference contains this.")] = "",
    jobs: Annotated[int, typer.Option("-j", min=1, help="Processes that share the scenarios.")] = 1,
) -> None:
    """Run scenarios. Exits with 0 when all held, 1 when one failed, 2 when a file is malformed."""
    # The driver brings the whole pipeline along; the other commands start without it.
    from workers.ops.scenario import report
    from workers.ops.scenario.format import ScenarioError
    from workers.ops.scenario.run import run_paths

    try:
        results = run_paths(paths, select, jobs)
    except ScenarioError as error:
        complain(str(error))
        raise typer.Exit(report.MALFORMED) from None
    if as_json:
        for line in report.json_lines(results):
            print(line)
    else:
        for result in results:
            for line in report.failure_lines(result):
                say(line)
        say(report.summary(results))
    raise typer.Exit(report.exit_status(results))
