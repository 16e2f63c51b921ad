"""When to try again: pure, exponential with full jitter."""

from typing import Final, Protocol

LONGEST_WISH_S: Final = 86_400.0
"""A platform's `Retry-After` is obeyed up to a day: no channel redelivers or keeps an update longer by itself (24 h,
Telegram), so a longer wish is a broken answer."""


class RetryPolicy(Protocol):
    """`base_s` is the first wait's upper end, `max_s` the longest wait, both in seconds."""

    @property
    def base_s(self) -> float: ...
    @property
    def max_s(self) -> float: ...


class Rng(Protocol):
    """A random source; `random.Random` is one."""

    def random(self) -> float:
        """A number in [0, 1)."""
        ...


def backoff_s(attempt: int, policy: RetryPolicy, rng: Rng) -> float:
    """Seconds to wait after try number `attempt` (from 1): uniform from 0 to min(max_s, base_s · 2^(attempt−1))."""
    # Beyond 2^62 any base is over any limit; a larger exponent would overflow a float.
    ceiling = min(policy.max_s, policy.base_s * 2.0 ** min(max(attempt, 1) - 1, 62))
    return ceiling * rng.random()


def next_retry_at(now_ms: int, attempt: int, policy: RetryPolicy, rng: Rng, after_s: float | None = None) -> int:
    """Unix milliseconds of the next try. `after_s`, what the other side asked for in seconds, wins over our backoff."""
    # `not >=` also refuses NaN, which compares false with everything.
    if after_s is None or not after_s >= 0:
        return now_ms + round(backoff_s(attempt, policy, rng) * 1000)
    # Rounded up: a platform that says 1.0001 s means not before.
    return now_ms + -int(-min(after_s, LONGEST_WISH_S) * 1000 // 1)
