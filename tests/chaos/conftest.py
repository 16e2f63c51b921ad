"""The figures of the scenes, and their table at the end of a run. They travel as properties of the tests' reports, so
they come together from all test processes."""

from collections.abc import Callable
from dataclasses import asdict

import pytest

from tests.chaos.rig import Row
from tests.chaos.table import lines

PROPERTY = "chaos"


@pytest.fixture
def figures(record_property: Callable[[str, object], None]) -> Callable[[Row], None]:
    """Takes the rows of a scene."""
    return lambda row: record_property(PROPERTY, asdict(row))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table of whatever scenes have run."""
    rows = [
        row
        for outcome in ("passed", "failed")
        for report in terminalreporter.getreports(outcome)
        for name, row in report.user_properties
        if name == PROPERTY
    ]
    if rows:
        terminalreporter.section("chaos")
        terminalreporter.write_line("\n".join(lines(rows)))
