"""What the simulation found, each as the shortest story that shows it."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest

from shared.message import Message
from shared.redis.client import Redis
from shared.redis.embedded import Embedded
from tests.integration.script_scenes import LANES, Rig, accepted, moved, turn_of
from tests.simulation.driver import KINDS, reach
from tests.simulation.invariants import Rec
from tests.simulation.mix import Mix
from tests.simulation.outside import WAITS_S
from tests.simulation.world import START_MS, World
from workers.deadletters import store

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
    made = reach(server.url)
    made.flushall()
    yield made
    made.close()


@pytest.fixture
def world(client: Redis, server: Embedded) -> Iterator[World]:
    made = World(SEED, client, server.url, mixed=asdict(Mix()))
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
        fields = {"ready_at": now, "harness": "default", "back": "dispatch"}
        move(now, rig.to(id_, "parked:lane", fields=fields))

    def move(now: int, *moves: dict[str, Any]) -> None:
        reply = rig.scripts.call("move", now, **moved(*moves, holder="", token="", release=False))
        assert reply[0] == ["ok"] * len(moves)

    def start(now: int) -> list[str]:
        return rig.scripts.call("start", now, harness="default", turn=turn_of(f"d{now}"), **LANES)[:2]

    rig.scripts.call("accept", at, **accepted("m1", "m2", "m3"))
    move(at, rig.to("m1", "quotes"), rig.to("m2", "quotes"), rig.to("m3", "quotes"))
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
    outs: list[Rec] = []
    for _ in range(20):
        world.settle()
        outs = [rec for rec in world.look().recs.values() if rec.out]
        if any(out.place == "due" for out in outs):
            break
        world.advance(world.clock.now_ms() + 500)
    assert [(out.place, out.takeovers) for out in outs] == [("due", "")]


def test_a_pause_that_begins_while_a_send_waits_for_its_turn_holds_it(world: World) -> None:
    """Behaviour, section 5: paused is a wait. Found by seed 195: the switches were read twice before a send, and
    the second look ignored the pause."""
    assert world.publish([owners()])
    for _ in range(20_000):
        if any("delivery" in event and " take " in event for event in world.events):
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
    assert [r.place for r in world.look().recs.values() if r.out] == ["parked:pause"]


def test_who_stood_still_beyond_its_claim_does_not_write_it_again_after_a_restart(world: World) -> None:
    """Design, section 3: only the holder may apply. Found by a seed with long freezes: the keeper took a
    claim over and gave it back, and its holder's first beat after the restart wrote it again."""
    actor, name = world.actors[0], "admission:1"
    with actor.ctx.beats.holding(name, "mine", 3.0, 60.0) as hold:
        world.clock.set(START_MS + 5_000)
        world.restarts = 1
        actor.ctx.beats.tick()
    assert hold.lost
    assert world.client.hget(world.keys.held, name) is None


def test_a_dead_letter_whose_parts_are_gone_is_not_replayed(world: World) -> None:
    """Behaviour, section 5: what a replay needs must be there. Found by a seed with moves that fail inside: the
    turn's move failed, the record's own did not, so that its parts were gone and every delivery of it failed."""
    turn, out = "M1", "M1-5"
    kept = {"place": "ended", "step": 7, "disposition": "dead", "env": "{}", "part": "1", "lane": "l", "account": "tg"}
    world.client.hset(world.keys.record(turn), mapping=kept)
    world.client.hset(world.keys.record(out), mapping={"place": "ended", "step": 2, "kind": "out"})
    letter = {"stage": "delivery", "reason": "move-failed", "status": "dead", "out": out}
    world.client.hset(world.keys.letter(turn), mapping=letter)
    found = store.get(world.operator.ctx, turn)
    assert found is not None
    assert store.replay(world.operator.ctx, found, "test") == store.REFUSALS["gone"]
