"""What the simulation found, each as the shortest story that shows it."""

from collections.abc import Iterator

import pytest

from shared.message import Message
from shared.redis.client import Redis, connect
from shared.redis.embedded import Embedded
from tests.integration.script_scenes import KEEP, LANES, Rig, accepted
from tests.simulation.driver import KINDS
from tests.simulation.outside import WAITS_S
from tests.simulation.world import START_MS, World

WAIT_MS = 10_000
"""`order_wait_ms` of these scripts' lanes."""
SEED = 1
"""Any: these stories leave nothing to chance."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    with Embedded.start(tmp_path_factory.mktemp("redis"), durable=False, kinds=KINDS) as running:
        yield running


@pytest.fixture
def client(server: Embedded) -> Iterator[Redis]:
    made = connect(server.url)
    made.flushall()
    yield made
    made.close()


@pytest.fixture
def world(client: Redis, server: Embedded) -> Iterator[World]:
    made = World(SEED, client, server.url)
    yield made
    made.close()


def owners() -> Message:
    """The owner's private message on the Telegram account, which one part answers."""
    return Message(
        channel="telegram", account="tg", message_id="1", keys=("1:1",), chat_id="1", chat_type="private",
        sender_id="1", text="when is low water?",
    )  # fmt: skip


def test_what_waited_long_enough_does_not_pass_an_earlier_one_that_froze_meanwhile(client: Redis) -> None:
    """Design, section 4: frozen turns are never passed over. Found by seed 208: m3 had waited for m1 and m2 and stood
    in dispatch; then m2 froze and began its own wait for m1, and m3 started before it."""
    assert LANES["order_wait_ms"] == WAIT_MS
    rig = Rig(client)
    at = rig.now()

    def freeze(id_: str, now: int) -> None:
        fields = {"ready_at": now, "harness": "default", "back": "dispatch", "turn": "1"}
        moves = [rig.to(id_, "parked:lane", fields=fields)]
        assert rig.scripts.call("move", now, holder="", token="", moves=moves, **LANES, **KEEP) == ["ok"]

    def start(now: int) -> list[str]:
        return rig.scripts.call("start", now, harness="default", token=f"d{now}", **LANES)[:2]

    rig.scripts.call("accept", at, **accepted("m1", "m2", "m3"))
    freeze("m3", at)
    rig.scripts.call("fire", at + WAIT_MS, limit=9, **LANES)
    assert rig.hget("m3", "place") == "dispatch"
    late = at + WAIT_MS + 1
    freeze("m2", late)
    assert start(late) == ["none"]
    assert rig.hget("m3", "place") == "parked:lane"
    rig.scripts.call("fire", late + WAIT_MS, limit=9, **LANES)
    assert start(late + WAIT_MS) == ["ok", "m2"]


def test_a_429_is_waited_for_and_costs_no_takeover(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Design, section 3: a platform's Retry-After wins. Found by the first seeds: counting the 429 failed, so that the
    record stood under its claim until the lease ran out, as if its worker had died."""
    monkeypatch.setattr("tests.simulation.outside.WAITS_S", WAITS_S[:1])
    world.harness.answers = {"M001" + f"{START_MS:022d}": 1}
    world.apis["tg"].first = ["too many"]
    assert world.publish([owners()])
    for _ in range(4):
        world.settle()
        world.advance(world.clock.now_ms() + 1000)
    [out] = [rec for rec in world.look().recs.values() if rec.kind == "out"]
    assert (out.place, out.takeovers) == ("due", "")


def test_a_pause_that_begins_while_a_send_waits_for_its_turn_holds_it(world: World) -> None:
    """Behaviour, section 5: paused is a wait. Found by seed 195: the switches were read twice before a send, and
    the second look ignored the pause."""
    assert world.publish([owners()])
    for _ in range(20_000):
        if any(" admit " in event for event in world.events):
            break
        runnable = world.crew.runnable(world.clock.now_ms())
        if runnable:
            world.resume(runnable[0])
        elif waiting := world.wakes():
            world.wake(waiting[0][0], world.take(waiting[0][0], -1))
        else:
            world.advance(world.clock.now_ms() + 100)
    world.process.switches.write("paused", True, "test", world.clock.now_ms())
    world.settle()
    assert not world.books.sends
    assert [r.place for r in world.look().recs.values() if r.kind == "out"] == ["parked:pause"]
