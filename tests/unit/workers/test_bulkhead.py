"""An account's platform calls: so many at once, at its platform's rate, over all workers (design, section 3)."""

from contextlib import ExitStack

import pytest
import redis
from core_world import NOW_MS, Core, core_of, settings_of

from shared.channels.port import Limits
from workers.bulkhead import BUSY_MS, Full, account_call, send_rates

LIMITS = Limits(4096, "utf16", per_chat=(1, 1.0), per_account=(30, 1.0), dedupe_s=86_400)
SLOW = Limits(4096, "utf16", per_chat=(3, 6.0), per_account=(100, 1.0), dedupe_s=86_400)


@pytest.fixture
def two(core_client: redis.Redis) -> tuple[Core, Core]:
    """Two processes, each with its own context, on one server."""
    settings = settings_of({"pipeline": {"account_concurrency": 3}})
    return core_of(core_client, settings), core_of(core_client, settings)


def test_at_most_account_concurrency_at_once_over_two_processes(two: tuple[Core, Core]) -> None:
    here, there = (core.ctx for core in two)
    account = here.settings.accounts[0]
    with ExitStack() as calls:
        calls.enter_context(account_call(here, account, "a"))
        calls.enter_context(account_call(there, account, "b"))
        with account_call(there, account, "c"), pytest.raises(Full) as full:
            calls.enter_context(account_call(here, account, "d"))
        assert full.value.after_s == 0.2
        calls.enter_context(account_call(here, account, "d"))
        with pytest.raises(Full):
            calls.enter_context(account_call(there, account, "e"))
    assert here.client.zcard(here.keys.busy("demo")) == 0


def test_a_call_that_fails_is_given_back(two: tuple[Core, Core]) -> None:
    ctx = two[0].ctx
    with pytest.raises(OSError), account_call(ctx, ctx.settings.accounts[0], "a"):
        raise OSError
    assert ctx.client.zcard(ctx.keys.busy("demo")) == 0


def test_another_account_is_not_held_up(two: tuple[Core, Core]) -> None:
    ctx = two[0].ctx
    other = ctx.settings.accounts[0].model_copy(update={"id": "other"})
    with ExitStack() as calls:
        for name in "abc":
            calls.enter_context(account_call(ctx, ctx.settings.accounts[0], name))
        calls.enter_context(account_call(ctx, other, "d"))


def test_a_dead_caller_stops_counting_after_sixty_seconds(two: tuple[Core, Core]) -> None:
    core = two[0]
    ctx, account = core.ctx, core.ctx.settings.accounts[0]
    assert BUSY_MS == 60_000
    dead = [account_call(ctx, account, name) for name in "abc"]
    for call in dead:
        call.__enter__()  # its worker dies: it is never left
    core.clock.step(59.999)
    with pytest.raises(Full), account_call(ctx, account, "d"):
        pass
    core.clock.step(0.001)
    with account_call(ctx, account, "d"):
        assert ctx.client.zrange(ctx.keys.busy("demo"), 0, -1) == ["d"]
    for call in dead:
        call.__exit__(None, None, None)


def test_the_rates_of_a_send_are_its_chats_and_its_accounts(core: Core) -> None:
    keys, account = core.ctx.keys, core.ctx.settings.accounts[0]
    assert send_rates(core.ctx, account, "harbour", SLOW) == [
        (keys.rate("demo", "chat:harbour"), 2_000, 4_000),
        (keys.rate("demo", "account"), 10, 990),
    ]


def started(core: Core, chat: str, limits: Limits) -> float | None:
    """None when a call could start now, else the seconds to wait."""
    account = core.ctx.settings.accounts[0]
    try:
        with account_call(core.ctx, account, "m", send_rates(core.ctx, account, chat, limits)):
            return None
    except Full as wait:
        return wait.after_s


def test_a_burst_is_let_through_and_then_one_an_interval(core: Core) -> None:
    """Three in six seconds: three at once, then one every two seconds."""
    assert [started(core, "a", SLOW) for _ in range(4)] == [None, None, None, 2.0]
    core.clock.step(1.5)
    assert started(core, "a", SLOW) == 0.5
    core.clock.step(0.5)
    assert [started(core, "a", SLOW) for _ in range(2)] == [None, 2.0]
    core.clock.step(6)
    assert [started(core, "a", SLOW) for _ in range(4)] == [None, None, None, 2.0]


def test_without_a_burst_there_is_one_an_interval(core: Core) -> None:
    assert [started(core, "a", LIMITS) for _ in range(2)] == [None, 1.0]
    core.clock.step(1)
    assert started(core, "a", LIMITS) is None


def test_what_is_refused_uses_up_nothing(core: Core) -> None:
    assert started(core, "a", LIMITS) is None
    for _ in range(50):
        assert started(core, "a", LIMITS) == 1.0
    assert started(core, "b", LIMITS) is None  # the account's rate was not touched by the refused ones
    core.clock.step(1)
    assert started(core, "a", LIMITS) is None


def test_the_rate_of_the_whole_account_holds_over_its_chats(core: Core) -> None:
    results = [started(core, f"chat-{n}", LIMITS) for n in range(31)]
    assert results[:30] == [None] * 30
    assert results[30] == 0.034  # 1000 / 30 ms, rounded up: never faster than the platform allows


def test_times_are_those_of_the_clock_that_is_given(core: Core) -> None:
    started(core, "a", LIMITS)
    [stored] = core.ctx.client.mget(core.ctx.keys.rate("demo", "chat:a"))
    assert int(stored) == NOW_MS + 1_000
