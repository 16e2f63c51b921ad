"""Lost, doubled, reordered, dropped: each is noticed, and nothing else is."""

from dataclasses import replace

from workers.ops.bench.events import text
from workers.ops.bench.figures import NONE, Trouble
from workers.ops.bench.truth import CLOCKS_MS, Ended, at_platform, in_order, judged, of_ends

GOOD = [Ended(n, 100 + n, f"lane{n % 2}", "answered", 1000 + n) for n in range(6)]


def test_a_good_run_has_no_trouble() -> None:
    assert judged(GOOD, {"a": 1, "b": 1}, 6) == NONE


def test_a_message_without_an_end_or_without_a_record_is_lost() -> None:
    assert judged([*GOOD[:5], replace(GOOD[5], disposition="")], {}, 6) == Trouble(lost=1)
    assert judged(GOOD[:5], {}, 6) == Trouble(lost=1)


def test_a_second_end_and_a_second_outbound_record_are_doubled() -> None:
    assert judged([*GOOD, replace(GOOD[5], ticket=106)], {}, 6).doubled == 1
    assert judged(GOOD, {"a": 3}, 6) == Trouble(doubled=2)


def test_an_end_before_an_earlier_tickets_is_reordered_in_its_lane_only() -> None:
    late = [replace(GOOD[0], ended_at_ms=1003 + CLOCKS_MS), *GOOD[1:]]
    assert judged(late, {}, 6) == Trouble(reordered=1)
    same_ms = [replace(GOOD[0], ended_at_ms=1002), *GOOD[1:]]
    assert judged(same_ms, {}, 6) == NONE


def test_a_ticket_out_of_the_order_of_sending_is_reordered() -> None:
    swapped = [replace(GOOD[0], number=2), GOOD[1], replace(GOOD[2], number=0), *GOOD[3:]]
    assert judged(swapped, {}, 6) == Trouble(reordered=1)


def test_an_end_that_the_scene_does_not_allow_is_dropped() -> None:
    throttled = [*GOOD[:5], replace(GOOD[5], disposition="throttled")]
    assert judged(throttled, {}, 6) == Trouble(dropped=1)
    assert judged(throttled, {}, 6, frozenset({"answered", "throttled"})) == NONE


def test_a_second_copy_that_ended_as_duplicate_is_neither_an_end_nor_doubled() -> None:
    allowed = frozenset({"answered", "duplicate"})
    copy = replace(GOOD[5], ticket=106, disposition="duplicate")
    assert judged([*GOOD, copy], {}, 6, allowed) == NONE
    assert judged([*GOOD[:5], copy], {}, 6, allowed) == Trouble(lost=1)
    assert judged([*GOOD, copy], {}, 6) == Trouble(dropped=1)


def test_texts_of_a_conversation_are_found_whatever_stands_around_them() -> None:
    said = {"g": [f'{{"text": "{text("r2", n)}"}}' for n in (0, 2, 1, 2)] + [text("r1", 0), "something else"]}
    assert in_order(said, "r2", 4) == Trouble(lost=1, doubled=1, reordered=1)


def test_what_the_platform_saw_is_judged_by_chat() -> None:
    seen = [["a", "m", text("r1", 1)], ["b", "m", text("r1", 0)], ["a", "m", text("r1", 3)]]
    assert at_platform(seen, "r1", 3) == NONE
    assert at_platform([*seen, seen[0]], "r1", 3) == Trouble(doubled=1, reordered=1)


def test_a_peers_ends_are_judged_alike() -> None:
    assert of_ends(["0", "1", "2", "3"], 4, 2) == NONE
    assert of_ends(["2", "1", "0", "0"], 4, 2) == Trouble(lost=1, doubled=1, reordered=1)
