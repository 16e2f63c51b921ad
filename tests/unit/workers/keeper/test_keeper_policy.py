"""Which claims and leases ran out: only a silence watched from end to end counts (design.md, section 3, Time)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.keeper.policy import Sight, length_s, watch

CLAIM_S, LEASE_S = 3.0, 30.0


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("admission:7", CLAIM_S),
        ("engagement:63", CLAIM_S),
        ("judge:01ABC", CLAIM_S),
        ("quotes:01ABC", CLAIM_S),
        ("turn:01ABC", LEASE_S),
        ("delivery:01ABC-5", LEASE_S),
        ("keeper", LEASE_S),
        ("connector:demo", LEASE_S),
    ],
)
def test_claims_last_claim_s_and_leases_lease_s(name: str, seconds: float) -> None:
    assert length_s(name, CLAIM_S, LEASE_S) == seconds


def looks(*values: tuple[float, str | None], name: str = "quotes:1") -> list[bool]:
    """Whether the name had run out at each look (time, what was held)."""
    sights: dict[str, Sight] = {}
    out: list[bool] = []
    for now, value in values:
        sights, silent = watch(sights, {} if value is None else {name: value}, now, CLAIM_S, LEASE_S)
        out.append(name in silent)
    return out


def test_a_holder_is_given_its_whole_length_from_the_first_look() -> None:
    assert looks((100, "a|0|1"), (103, "a|0|1"), (103.1, "a|0|1")) == [False, False, True]


def test_however_old_a_claim_is_a_new_keeper_watches_it_first() -> None:
    assert looks((1e6, "a|9|1")) == [False]


def test_any_beat_starts_the_watch_again() -> None:
    assert looks((0, "a|0|1"), (2.9, "a|1|1"), (5.8, "a|1|1"), (6.0, "a|1|1")) == [False, False, False, True]


def test_another_token_or_a_gap_starts_the_watch_again() -> None:
    assert looks((0, "a|0|1"), (4, "b|0|1")) == [False, False]
    assert looks((0, "a|0|1"), (2, None), (4, "a|0|1")) == [False, False, False]


def test_a_lease_is_given_thirty_seconds() -> None:
    assert looks((0, "a|0|1"), (30, "a|0|1"), (30.5, "a|0|1"), name="turn:1") == [False, False, True]


def test_what_is_not_held_any_more_is_forgotten() -> None:
    sights, _ = watch({"quotes:1": Sight("a|0|1", 0)}, {}, 1, CLAIM_S, LEASE_S)
    assert sights == {}


NAMES = st.sampled_from(["admission:1", "judge:1", "turn:1", "delivery:1", "keeper"])
STEPS = st.lists(st.tuples(st.floats(0, 20), st.sampled_from([None, "a|0|", "a|1|", "b|0|"])), max_size=30)


@given(NAMES, STEPS)
def test_never_earlier_than_the_length(name: str, steps: list[tuple[float, str | None]]) -> None:
    length = CLAIM_S if name.split(":")[0] in ("admission", "judge") else LEASE_S
    sights: dict[str, Sight] = {}
    now, last, since = 0.0, None, 0.0
    for wait, value in steps:
        now += wait
        if value != last:
            last, since = value, now
        sights, silent = watch(sights, {} if value is None else {name: value}, now, CLAIM_S, LEASE_S)
        assert (name in silent) is (value is not None and now - since > length)
