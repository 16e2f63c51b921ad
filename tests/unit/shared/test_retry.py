"""Exponential, full jitter, Retry-After wins."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.retry import backoff_s, next_retry_at
from shared.settings import RetrySettings

POLICY = RetrySettings(attempts=5, base_s=1, max_s=300)


class Fixed:
    def __init__(self, value: float) -> None:
        self._value = value

    def random(self) -> float:
        return self._value


@pytest.mark.parametrize(("attempt", "ms"), [(1, 500), (2, 1000), (3, 2000), (4, 4000), (5, 8000), (10, 150_000)])
def test_the_wait_doubles_up_to_the_limit(attempt: int, ms: int) -> None:
    assert next_retry_at(1_000_000, attempt, POLICY, Fixed(0.5)) == 1_000_000 + ms


@given(st.integers(1, 10_000), st.integers(0, 2**32))
def test_full_jitter_stays_in_its_range(attempt: int, seed: int) -> None:
    assert 0 <= backoff_s(attempt, POLICY, random.Random(seed)) <= min(300, 2.0 ** min(attempt - 1, 20))


@pytest.mark.parametrize(("wish", "ms"), [(0, 0), (7, 7000), (1.0001, 1001), (500, 500_000), (1e300, 86_400_000)])
def test_retry_after_wins(wish: float, ms: int) -> None:
    assert next_retry_at(5, 1, POLICY, Fixed(0.5), wish) == 5 + ms


@pytest.mark.parametrize("wish", [-1.0, math.nan, None])
def test_a_senseless_wish_is_not_obeyed(wish: float | None) -> None:
    assert next_retry_at(5, 1, POLICY, Fixed(0.5), wish) == 505


def test_an_infinite_wish_ends_after_a_day() -> None:
    assert next_retry_at(0, 1, POLICY, Fixed(0.5), math.inf) == 86_400_000
