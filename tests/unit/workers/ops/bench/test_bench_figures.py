"""Rows of the benchmark: ratios, verdicts, what is printed."""

import pytest

from workers.ops.bench.figures import (
    COLUMNS,
    Rate,
    Row,
    Runs,
    Target,
    Trouble,
    in_turn,
    middle,
    percentile,
    sound,
    written,
)


def row(ours: float | None, theirs: float | None, target: Target | None, **more: str) -> Row:
    return Row("rates", "answered", "messages/s", ours, "celery", theirs, target, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ours", "theirs", "target", "verdict"),
    [
        (200.0, 100.0, Target("at least", 2), "hit"),
        (199.0, 100.0, Target("at least", 2), "missed"),
        (13.0, 10.0, Target("at most", 1.3), "hit"),
        (13.1, 10.0, Target("at most", 1.3), "missed"),
        (70.0, None, Target("at most", 70, "ours"), "hit"),
        (70.5, None, Target("at most", 70, "ours"), "missed"),
        (5.0, None, Target("at least", 2), ""),
        (5.0, 1.0, None, ""),
    ],
)
def test_a_target_is_hit_at_its_bound(ours: float, theirs: float | None, target: Target | None, verdict: str) -> None:
    assert row(ours, theirs, target).verdict == verdict


def test_what_could_not_be_measured_says_why_and_is_neither_hit_nor_missed() -> None:
    made = row(200.0, None, Target("at least", 2), unmeasured="no registry")
    assert made.verdict == "not measured"
    assert made.cells()[-1] == "not measured: no registry"
    assert made.to_dict()["ratio"] is None


def test_a_row_has_a_cell_for_each_column_and_tells_a_peers_trouble() -> None:
    made = Row("rates", "answered", "m/s", 2.0, "dramatiq", 1.0, trouble=Trouble(), peer_trouble=Trouble(reordered=3))
    assert len(made.cells()) == len(COLUMNS)
    assert "0/0/0/0 (dramatiq: 0/0/3/0)" in made.cells()


def test_a_run_is_sound_only_without_any_trouble_of_ours() -> None:
    good = Row("a", "b", "c", trouble=Trouble(), peer_trouble=Trouble(lost=1))
    assert sound([good])
    assert not any(sound([good, Row("a", "b", "c", trouble=Trouble(**{kind: 1}))]) for kind in Trouble.__slots__)


def test_runs_give_medians_and_all_their_trouble() -> None:
    runs = Runs([Rate(10, Trouble(1), 4.0), Rate(30, Trouble(0, 2)), Rate(20, Trouble(), 6.0)])
    assert (runs.rate, runs.cpu_ms, runs.trouble) == (20, 5.0, Trouble(1, 2))
    assert (Runs().rate, middle([])) == (None, None)


def test_runs_in_turn_are_compared_pair_by_pair() -> None:
    """The machine was ten times slower in the second round; the ratio does not notice."""
    assert in_turn([200, 20, 220], [100, 10, 100]) == 2
    assert in_turn([200], []) is None
    assert row(200.0, 1.0, Target("at least", 2), paired=1.9).verdict == "missed"  # type: ignore[arg-type]


def test_percentiles_are_values_that_occurred() -> None:
    values = [float(n) for n in range(1, 101)]
    assert [percentile(values, share) for share in (0.5, 0.99, 1.0)] == [50, 99, 100]
    assert percentile([7.0], 0.99) == 7


def test_figures_are_written_with_three_digits() -> None:
    assert [written(value) for value in (12345.6, 99.94, 0.826, None)] == ["12,346", "99.9", "0.826", ""]
