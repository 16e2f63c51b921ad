"""Claims and leases are held by a beat, over a real server (design.md, section 3)."""

import threading
from pathlib import Path

import pytest
import redis
from core_world import PREFIX, StepClock

from shared.beats import BEAT_S, Beats, Hold, Interrupt, ServerWatch
from shared.redis.client import connect
from shared.redis.embedded import Embedded
from shared.redis.keys import Keys
from shared.redis.scripts import Scripts

KEYS = Keys(PREFIX)
CLAIM_S, LEASE_S = 3.0, 30.0


class Holder:
    """One process that holds things."""

    def __init__(self, client: redis.Redis) -> None:
        self.client, self.clock = client, StepClock()
        self.scripts = Scripts(client, PREFIX, late_ms=0)
        self.watch = ServerWatch(client, self.clock, LEASE_S)
        self.beats = Beats(self.scripts, self.clock, self.watch)

    def hold(self, name: str, token: str) -> None:
        assert self.scripts.call("hold", self.clock.now_ms(), name=name, token=token) == 1

    def beat(self, times: int = 1, every_s: float = 1.0) -> None:
        for _ in range(times):
            self.clock.step(every_s)
            self.beats.tick()

    def stored(self, name: str) -> str | None:
        return self.client.hget(KEYS.held, name)  # pyright: ignore[reportReturnType]


@pytest.fixture
def holder(core_client: redis.Redis) -> Holder:
    return Holder(core_client)


def test_every_tick_renews_what_is_held(holder: Holder) -> None:
    holder.hold("keeper", "k1")
    with holder.beats.holding("keeper", "k1", LEASE_S, 3600) as hold:
        holder.beat(3)
        assert holder.stored("keeper") == "k1|3|"
        assert (hold.interrupt, holder.beats.held()) == ("", [hold])
    holder.beat()
    assert holder.stored("keeper") == "k1|3|"
    assert holder.beats.held() == []


def test_renewal_stops_at_the_limit_and_a_hung_worker_lets_go(holder: Holder) -> None:
    holder.hold("quotes:1", "q")
    with holder.beats.holding("quotes:1", "q", CLAIM_S, 5) as hold:
        holder.beat(4)
        assert holder.stored("quotes:1") == "q|4|"
        holder.beat(2)
        assert holder.stored("quotes:1") == "q|4|"
        assert not hold.lost
        holder.beat(1)
        assert hold.lost
        assert holder.stored("quotes:1") == "q|4|"


@pytest.mark.parametrize(("length_s", "kept_s", "lost_s"), [(30.0, 20.0, 20.5), (3.0, 2.0, 2.5)])
def test_without_renewal_for_two_thirds_of_its_length_it_is_lost(
    holder: Holder, length_s: float, kept_s: float, lost_s: float
) -> None:
    holder.hold("turn:1", "t")
    with holder.beats.holding("turn:1", "t", length_s, 3600) as hold:
        holder.client.set(KEYS.held, "of another type: every renewal fails")
        holder.clock.step(kept_s)
        holder.beats.tick()
        assert not hold.lost
        holder.clock.step(lost_s - kept_s)
        holder.beats.tick()
        assert hold.lost


def test_a_short_outage_is_forgotten(holder: Holder) -> None:
    holder.hold("turn:1", "t")
    with holder.beats.holding("turn:1", "t", LEASE_S, 3600) as hold:
        kept = holder.client.dump(KEYS.held)
        holder.client.set(KEYS.held, "of another type")
        holder.beat(15)
        holder.client.restore(KEYS.held, 0, kept, replace=True)  # pyright: ignore[reportArgumentType]
        holder.beat(15)
        assert not hold.lost
        assert holder.stored("turn:1") == "t|15|"


@pytest.mark.parametrize("value", ["other|0|1", None])
def test_what_another_took_over_is_lost_at_the_next_beat(holder: Holder, value: str | None) -> None:
    holder.hold("turn:1", "t")
    with holder.beats.holding("turn:1", "t", LEASE_S, 3600) as hold:
        holder.client.hdel(KEYS.held, "turn:1")
        if value:
            holder.client.hset(KEYS.held, "turn:1", value)
        holder.beat()
        assert hold.lost
        assert holder.stored("turn:1") == value
        holder.beat()
        assert holder.stored("turn:1") == value


def test_one_that_is_lost_takes_no_other_along(holder: Holder) -> None:
    holder.hold("a", "1")
    holder.hold("b", "2")
    with holder.beats.holding("a", "1", LEASE_S, 99) as lost, holder.beats.holding("b", "2", LEASE_S, 99) as kept:
        holder.client.hdel(KEYS.held, "a")
        holder.beat(2)
        assert (lost.lost, kept.lost) == (True, False)
        assert holder.stored("b") == "2|2|"


def test_g_a_turn_that_stop_marked_is_told_at_the_next_beat(holder: Holder) -> None:
    holder.client.hset(KEYS.held, "turn:E1", "t|0|E1")
    told = list[str]()
    with holder.beats.holding("turn:E1", "t", LEASE_S, 3600, "E1") as hold:
        hold.on_change = lambda: told.append(hold.interrupt)
        holder.beat()
        assert (hold.interrupt, told) == ("", [])
        holder.client.hset(KEYS.record("E1"), "cancel", 1)
        holder.beat(3)
        assert (hold.interrupt, told) == ("stop", ["stop"])
        assert holder.stored("turn:E1") == "t|4|E1"


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        (["stop", "drain"], "drain"),
        (["stop", ""], "stop"),
        (["lost", "stop"], "lost"),
        (["drain", "lost"], "lost"),
    ],
)
def test_lost_beats_what_was_said_before(said: list[Interrupt], heard: str) -> None:
    hold = Hold("turn:1", "t", LEASE_S, 99, 0)
    for interrupt in said:
        hold.tell(interrupt)
    assert (hold.interrupt, hold.lost) == (heard, heard == "lost")


def test_the_thread_beats_by_itself_until_it_is_stopped(holder: Holder) -> None:
    holder.hold("keeper", "k")
    beaten = threading.Event()
    with holder.beats.holding("keeper", "k", LEASE_S, 3600) as hold:
        hold.on_change = beaten.set
        holder.client.hdel(KEYS.held, "keeper")
        holder.beats.start()
        assert beaten.wait(BEAT_S * 10)
        holder.beats.stop()
        assert hold.lost


def test_after_a_server_change_holders_write_their_claims_again_and_nothing_starts(tmp_path: Path) -> None:
    with Embedded.start(tmp_path, durable=False, kinds=["redis-server", "valkey-server", "wheel"]) as first:
        client = connect(first.url)
        holder = Holder(client)
        assert not holder.watch.quiet()
        holder.hold("turn:1", "t")
        with holder.beats.holding("turn:1", "t", LEASE_S, 3600, "1") as hold:
            first.stop()
            with Embedded.start(tmp_path, durable=False, kinds=["redis-server", "valkey-server", "wheel"]) as second:
                assert second.url == first.url
                assert holder.stored("turn:1") is None
                holder.beat()
                assert not hold.lost
                assert holder.stored("turn:1") == "t|1|1"
                assert holder.watch.quiet()
                holder.beat(28)
                assert holder.watch.quiet()
                holder.beat(2)
                assert not holder.watch.quiet()
                client.hdel(KEYS.held, "turn:1")
                holder.beat()
                assert hold.lost
        client.close()


def test_nobody_asserts_over_a_new_holder(holder: Holder) -> None:
    holder.client.hset(KEYS.held, "turn:1", "new|0|1")
    words = holder.scripts.call("renew", holder.clock.now_ms(), held=[["turn:1", "old", "1"]], **{"assert": True})
    assert words == ["lost"]
    assert holder.stored("turn:1") == "new|0|1"
