"""The map: the stages in order, and what derives from it (design.md, section 3)."""

from shared.outcome import STAGES as NAMES
from workers.pipeline import BATCH, BY_NAME, STAGES
from workers.stages import PLANS


def test_the_stages_stand_in_their_order_with_their_queues() -> None:
    assert [(s.name, s.queue, s.wake) for s in STAGES] == [
        ("admission", "wake.admission", "partition"),
        ("engagement", "wake.engagement", "partition"),
        ("judge", "wake.judge", "id"),
        ("quotes", "wake.quotes", "id"),
        ("dispatch", "wake.dispatch", "harness"),
        ("delivery", "wake.delivery", "id"),
    ]
    assert tuple(BY_NAME) == NAMES


def test_a_message_goes_from_stage_to_stage_and_the_judge_gives_it_back() -> None:
    assert {s.name: s.next for s in STAGES} == {
        "admission": "engagement",
        "engagement": "quotes",
        "judge": "engagement",
        "quotes": "dispatch",
        "dispatch": "delivery",
        "delivery": None,
    }


def test_one_writer_for_each_partition_and_threads_for_the_rest() -> None:
    assert {s.name: s.pool for s in STAGES if s.pool == "solo"} == {"admission": "solo", "engagement": "solo"}
    assert BATCH == 64


def test_every_stage_has_its_plan() -> None:
    assert {*PLANS.batches, *PLANS.singles, "dispatch"} == set(NAMES)
    assert {s.name for s in STAGES if s.wake == "partition"} == set(PLANS.batches)
    assert {s.name for s in STAGES if s.wake == "id"} == set(PLANS.singles)
