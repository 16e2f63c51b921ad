"""Keys that hold for a while: a fingerprint of sender and text means the same message for 12 s of received time."""

from admission_world import START_MS, account, private, results

from shared.message import Message
from workers.admission.policy import Item, World, decide, fold

PRINT = "fp30s:3:0f"


def said(number: int, after_ms: int, text: str = "在吗", print_: str = PRINT) -> Item:
    """A message with an id of its own, received `after_ms` after the first."""
    return private(
        number, received_ms=START_MS + after_ms, text=text, keys=(f"id:{number}", print_), windows={print_: 12_000}
    )


def ends(*items: Item) -> list[str]:
    return [place for place, _ in results(list(items), World(account()))]


def test_c13_a_copy_under_another_id_within_the_window_is_a_duplicate() -> None:
    assert ends(said(1, 0), said(2, 5_000)) == ["engagement", "duplicate"]
    assert ends(said(1, 0), said(2, 12_000)) == ["engagement", "duplicate"]


def test_c14_the_same_text_again_later_is_a_second_message() -> None:
    assert ends(said(1, 0), said(2, 12_001), said(3, 20_000)) == ["engagement", "engagement", "duplicate"]


def test_a_duplicate_does_not_make_the_window_longer() -> None:
    assert ends(said(1, 0), said(2, 10_000), said(3, 20_000)) == ["engagement", "duplicate", "engagement"]


def test_ids_hold_beyond_the_window_also_that_of_a_copy() -> None:
    again = [private(number, received_ms=START_MS + 60_000, envelope=f"again{number}", keys=(f"id:{number}",))
             for number in (1, 2)]  # fmt: skip
    assert ends(said(1, 0), said(2, 5_000), *again) == ["engagement", "duplicate", "duplicate", "duplicate"]


def test_the_order_of_receipt_does_not_matter_to_the_window() -> None:
    assert ends(said(1, 5_000), said(2, 0)) == ["engagement", "duplicate"]


def test_the_same_envelope_again_is_no_duplicate_of_itself() -> None:
    first = said(1, 0)
    _, world = fold([first], World(account()))
    assert getattr(decide(first, world).outcome, "stage", "") == "engagement"


def test_windows_come_through_json() -> None:
    message = said(1, 0).envelope.message
    assert Message.model_validate_json(message.model_dump_json(exclude_defaults=True)) == message
