"""The order of a story's decisions: as they were written, though the processes' clocks differ."""

from workers.ops.history import in_order


def row(stage: str, at: int) -> dict[str, object]:
    return {"stage": stage, "at": at}


def test_a_clock_that_is_behind_does_not_turn_two_stages_round() -> None:
    rows = [row("admission", 1002), row("engagement", 1001), row("dispatch", 1005)]
    told = in_order(rows, [row("delivery", 1003)])
    assert [one["stage"] for one in told] == ["admission", "engagement", "delivery", "dispatch"]
    assert in_order([], []) == []
