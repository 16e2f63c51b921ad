"""The one clock: the server's time, sampled and carried by the monotonic clock."""

import asyncio
from types import SimpleNamespace

import pytest

import shared.clock
from shared.clock import SAMPLE_EVERY_S, ServerClock

START_MS = 1_788_280_000_000


class Host:
    """The host's monotonic clock and the server's time, each set by hand; `down`: the server does not answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds, self.server_ms, self.asked = 50.0, START_MS, 0
        self.down: type[Exception] | None = None
        monkeypatch.setattr(shared.clock, "time", SimpleNamespace(monotonic=lambda: self.seconds))

    def time_ms(self) -> int:
        self.asked += 1
        if self.down is not None:
            raise self.down
        return self.server_ms


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(monkeypatch)


def test_a_sample_is_carried_by_the_monotonic_clock(host: Host) -> None:
    clock = ServerClock(host.time_ms)
    host.server_ms = 0
    host.seconds += 9.999
    assert clock.now_ms() == START_MS + 9_999
    assert host.asked == 1


def test_after_ten_seconds_the_server_is_asked_again(host: Host) -> None:
    clock = ServerClock(host.time_ms)
    host.seconds += SAMPLE_EVERY_S + 0.5
    host.server_ms = START_MS + 10_497
    assert clock.now_ms() == START_MS + 10_497
    host.seconds += 1
    assert clock.now_ms() == START_MS + 11_497
    assert host.asked == 2


@pytest.mark.parametrize("error", [ConnectionError, TimeoutError, OSError])
def test_it_never_goes_back_while_the_server_cannot_be_asked(host: Host, error: type[Exception]) -> None:
    clock = ServerClock(host.time_ms)
    host.down, seen = error, [clock.now_ms()]
    for _ in range(8):
        host.seconds += 7.25
        seen.append(clock.now_ms())
    assert seen == [START_MS + 7_250 * n for n in range(9)]


def test_a_server_whose_clock_was_set_back_does_not_take_time_before_the_last_sample(host: Host) -> None:
    clock = ServerClock(host.time_ms)
    host.seconds += 11
    host.server_ms = START_MS - 3_600_000
    assert clock.now_ms() >= START_MS


def test_a_clock_needs_the_server_once(host: Host) -> None:
    host.down = ConnectionError
    with pytest.raises(ConnectionError):
        ServerClock(host.time_ms)


def test_waiting_has_an_end_and_cancels_what_was_waited_for(host: Host) -> None:
    cancelled = list[bool]()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def run() -> None:
        await ServerClock(host.time_ms).wait_for(work(), 0.01)

    with pytest.raises(TimeoutError):
        asyncio.run(run())
    assert cancelled == [True]
