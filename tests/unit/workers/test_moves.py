"""Moves as data: what move.lua is given, and the one line a stage leaves (design.md, section 3)."""

import json

from core_world import settings_of
from hypothesis import given
from hypothesis import strategies as st

from workers.moves import Create, Move, Row, lanes, retention, slots


def test_what_is_empty_is_left_out_and_the_step_never_is() -> None:
    assert Move("E1", 0).as_argument() == {"id": "E1", "step": 0}


def test_a_move_keeps_what_it_has() -> None:
    move = Move(
        "E1",
        3,
        to="due",
        score=17,
        fields={"attempt": 1},
        drop=["url"],
        guards=[["room", "l", 5]],
        claims=["k"],
        claim="E1|x",
        freeze=("f", "bytes"),
        result=["E1-2", 0, "t", "sent", "m-1", "busy"],
        tidy=[["LTRIM", "k", 0, 9]],
        effects=[["DEL", "k"]],
        creates=[Create("E1-3", {"at": 5})],
        scopes=["lane"],
        lane_state="ready",
        stop=True,
        end=("dead", "gave-up", "dispatch"),
    )
    said = move.as_argument()
    assert said["creates"] == [{"id": "E1-3", "fields": {"at": 5}}]
    assert said["end"] == ("dead", "gave-up", "dispatch")
    assert (said["claim"], said["freeze"]) == ("E1|x", ("f", "bytes"))
    assert set(said) == {
        "id", "step", "to", "score", "fields", "drop", "guards", "effects", "creates", "scopes", "lane_state", "stop",
        "claims", "claim", "freeze", "result", "end",
    }  # fmt: skip


def test_a_field_that_is_dropped_is_not_written() -> None:
    said = Move("E1", 1, fields={"role": "guest", "silent": 1}, drop=["role", "log"]).as_argument()
    assert (said["fields"], said["drop"]) == ({"silent": 1}, ["role", "log"])


def test_a_row_is_one_compact_line() -> None:
    row = Row("quotes", "forward", "none", 5, 2, 7, (("provenance", "lookup"), ("fetched", True)))
    assert row.to_json() == (
        '{"stage":"quotes","outcome":"forward","reason":"none","at":5,"attempt":2,"version":7,'
        '"provenance":"lookup","fetched":true}'
    )
    assert "attempt" not in json.loads(Row("quotes", "forward", "none", 5).to_json())


def test_a_row_repeats_only_its_own_stage_outcome_reason_and_try() -> None:
    row = Row("delivery", "retry", "rate-limited", 9, 1)
    lines = (
        Row("quotes", "forward", "none", 1).to_json() + "\n" + Row("delivery", "retry", "rate-limited", 2, 1).to_json()
    )
    assert row.repeats(f"{lines}\n")
    assert not row.repeats("")
    for other in (
        Row("quotes", "retry", "rate-limited", 9, 1),
        Row("delivery", "park", "rate-limited", 9, 1),
        Row("delivery", "retry", "not-connected", 9, 1),
        Row("delivery", "retry", "rate-limited", 9, 2),
    ):
        assert not other.repeats(f"{lines}\n")


@given(st.text(max_size=20), st.text(max_size=20))
def test_a_row_never_breaks_its_line(stage: str, reason: str) -> None:
    line = Row(stage, "forward", reason, 5).to_json()
    assert "\n" not in line
    assert json.loads(line)["reason"] == reason


def test_retention_is_the_configurations() -> None:
    assert retention(settings_of()) == {"keep_ms": 604_800_000, "frozen_ms": 604_800_000, "short_ms": 3_600_000}
    half = settings_of({"pipeline": {"decision_days": 0.5, "frozen_days": 1}})
    assert (retention(half)["keep_ms"], retention(half)["frozen_ms"]) == (43_200_000, 86_400_000)


def test_every_harness_has_its_own_slots() -> None:
    settings = settings_of({"harness": {"concurrency": 4}, "harnesses": {"deep": {"concurrency": 2}}})
    assert slots(settings) == {"default": 4, "deep": 2}
    assert lanes(settings) == {"slots": {"default": 4, "deep": 2}, "order_wait_ms": 10_000}
