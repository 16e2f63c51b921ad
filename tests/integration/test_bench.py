"""`millstream bench` at its smallest: real processes, every figure there, nothing lost; peers that are not there."""

from dataclasses import replace
from pathlib import Path

import pytest

from shared.redis.embedded import available_kinds
from workers.ops.bench.figures import Row
from workers.ops.bench.run import run_bench
from workers.ops.bench.sizes import QUICK

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("up"),
    pytest.mark.skipif(available_kinds()[:1] in ([], ["fakeredis"]), reason="no server that counts commands"),
]

TINY = replace(
    QUICK, answered=60, silenced=200, fed=200, singles=20, hooks=100, alone=4, cost=10, known=(1_000, 2_000),
    overload=200,
)  # fmt: skip


def measured(*scenes: str) -> dict[str, Row]:
    report = run_bench(TINY, scenes, lambda _: None, lambda _: None)
    assert report.sound, [row.to_dict() for row in report.rows]
    return {f"{row.what} {row.peer}".strip(): row for row in report.rows}


def test_costs_and_ends_are_counted() -> None:
    rows = measured("cost", "overload")
    answered, silenced, index, under_way, overload = rows.values()
    assert (answered.target is not None, silenced.target is not None) == (True, True)
    assert (answered.ours or 0) > (silenced.ours or 0) > 1
    assert (index.ours or 0) > 200 * 400, "200 texts of 400 characters are in it"
    assert (under_way.ours or 0) > 500
    assert (overload.ours, overload.verdict) == (200, "hit")


def test_without_a_registry_ours_are_measured_and_the_others_say_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    rows = measured("edge")
    [row] = rows.values()
    assert (row.ours or 0) > 0
    assert (row.verdict, row.theirs) == ("not measured", None)
    assert "pip install" in row.unmeasured
