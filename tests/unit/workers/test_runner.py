"""The one imperative shell, over a real server: what goes wrong in a stage is never lost and never spreads."""

from collections.abc import Callable

import pytest
import redis
from core_world import Core, core_of, message, settings_of, wake_name
from redis.exceptions import ConnectionError as RedisConnectionError

from shared.beats import Hold
from shared.envelope import Envelope
from shared.outcome import STAGES, Finish, Forward, Stage
from workers.apply import Seen, outcome_move
from workers.claimed import Claimed
from workers.context import Context
from workers.keeper.keeper import Keeper
from workers.moves import Move
from workers.pipeline import BATCH
from workers.runner import ROUNDS, PlanBatch, Plans
from workers.stages import PLANS


def with_plans(core: Core, **batches: PlanBatch) -> Core:
    core.plans = Plans({**PLANS.batches, **batches}, PLANS.singles, PLANS.turns)  # pyright: ignore[reportArgumentType]
    return core


def forwarded(spoil: Callable[[Move, Envelope], None]) -> PlanBatch:
    """An admission that forwards everything, after `spoil` did something to each move."""

    def plan(ctx: Context, batch: list[tuple[Seen, Envelope]], claimed: Claimed) -> list[Move]:
        moves = [outcome_move(ctx, "admission", seen, Forward("engagement")) for seen, _ in batch]
        for move, (_, envelope) in zip(moves, batch, strict=True):
            spoil(move, envelope)
        return moves

    return plan


def unspoiled(move: Move, envelope: Envelope) -> None:
    """Every move as it is."""


def together(core: Core, count: int) -> list[str]:
    """Messages of one chat, so of one partition."""
    return core.publish(*(message(n, text=f"nr {n}") for n in range(count)))


def test_a_partition_plan_that_raises_leaves_the_claim_to_the_keeper(core: Core) -> None:
    def broken(ctx: Context, batch: list[tuple[Seen, Envelope]], claimed: Claimed) -> list[Move]:
        raise ZeroDivisionError

    [one] = together(with_plans(core, admission=broken), 1)
    core.wake()
    part = core.record(one)["part"]
    held = core.ctx.client.hgetall(core.ctx.keys.held)
    assert held[f"admission:{part}"].endswith(f"|0|{one}")
    assert core.end(one) == ("admission", "")
    keeper, core.plans = Keeper(core.ctx, scan=False), PLANS
    keeper.tick()
    core.clock.step(3.1)
    keeper.tick()
    assert core.record(one)["takeovers"] == "1"
    core.wake()
    assert core.end(one) == ("answered", "owner.private")


def test_a_single_plan_that_raises_leaves_the_claim_to_the_keeper(core: Core) -> None:
    async def broken(ctx: Context, seen: Seen, hold: Hold, claimed: Claimed) -> list[tuple[Seen, Move]]:
        raise ZeroDivisionError

    core.plans = Plans(PLANS.batches, {**PLANS.singles, "delivery": broken}, PLANS.turns)
    [one] = together(core, 1)
    core.wake()
    assert core.ctx.client.hget(core.ctx.keys.held, f"delivery:{one}").endswith(f"|0|{one}")
    keeper, core.plans = Keeper(core.ctx, scan=False), PLANS
    keeper.tick()
    core.clock.step(30.1)
    keeper.tick()
    core.wake()
    assert core.end(one) == ("answered", "owner.private")


@pytest.mark.parametrize("which", [0, 2, 4])
def test_p19_one_id_whose_move_fails_comes_alone_and_ends_move_failed_while_the_others_go_on(
    core: Core, which: int
) -> None:
    def spoil(move: Move, envelope: Envelope) -> None:
        if envelope.message.text == f"nr {which}":
            move.effects.append(["LPUSH", "t:switches", "of another type"])

    ids = together(with_plans(core, admission=forwarded(spoil)), 5)
    core.wake("admission")
    bad = ids[which]
    assert core.end(bad) == ("dead", "move-failed")
    assert [core.end(i) for i in ids if i != bad] == [("engagement", "")] * 4
    keys, client = core.ctx.keys, core.ctx.client
    assert client.zrange(keys.at("admission", core.record(bad)["part"]), 0, -1) == []
    assert client.zrange(keys.at("engagement", core.record(bad)["part"]), 0, -1) == [i for i in ids if i != bad]
    assert client.hget(keys.letter(bad), "reason") == "move-failed"
    assert client.hgetall(keys.held) == {}


def test_a_single_whose_move_fails_ends_move_failed(core: Core) -> None:
    async def spoiled(ctx: Context, seen: Seen, hold: Hold, harness: str, claimed: Claimed) -> list[tuple[Seen, Move]]:
        move = outcome_move(ctx, "dispatch", seen, Finish("answered", "empty"))
        move.effects.append(["LPUSH", "t:switches", "of another type"])
        return [(seen, move)]

    core.plans = Plans(PLANS.batches, PLANS.singles, spoiled)
    one, two = together(core, 2)
    core.wake("admission", "engagement", "dispatch")
    assert (core.end(one), core.end(two)) == (("dead", "move-failed"), ("dead", "move-failed"))
    assert core.ctx.client.hgetall(core.ctx.keys.held) == {}


def test_what_is_stale_is_decided_again_and_then_stands(core: Core) -> None:
    """A guard that holds only the third time: the world has changed meanwhile."""
    seen: list[int] = []

    def spoil(move: Move, envelope: Envelope) -> None:
        seen.append(1)
        if len(seen) < 3:
            move.guards.append(["below", "t:none", "-inf", "+inf", 0])

    [one] = together(with_plans(core, admission=forwarded(spoil)), 1)
    core.wake("admission")
    assert (core.end(one), len(seen)) == (("engagement", ""), 3)


def test_what_is_always_stale_is_tried_alone_and_then_dead(core: Core) -> None:
    batches: list[int] = []

    def plan(ctx: Context, batch: list[tuple[Seen, Envelope]], claimed: Claimed) -> list[Move]:
        batches.append(len(batch))
        moves = [outcome_move(ctx, "admission", seen, Forward("engagement")) for seen, _ in batch]
        for move, (_, envelope) in zip(moves, batch, strict=True):
            if envelope.message.text == "nr 0":
                move.guards.append(["below", "t:none", "-inf", "+inf", 0])
        return moves

    one, two = together(with_plans(core, admission=plan), 2)
    core.wake("admission")
    assert core.end(one) == ("dead", "move-failed")
    assert core.end(two) == ("engagement", "")
    assert batches == [2] + [1] * ROUNDS


def test_a_failing_message_holds_its_own_scope_and_nobody_elses(core: Core) -> None:
    def spoil(move: Move, envelope: Envelope) -> None:
        move.scopes = ["mine" if envelope.message.text in ("nr 0", "nr 1") else "other"]
        if envelope.message.text == "nr 0" and "spoiled" not in done:
            done.add("spoiled")
            move.guards.append(["below", "t:none", "-inf", "+inf", 0])

    done: set[str] = set()
    applied: list[list[str]] = []
    ids = together(with_plans(core, admission=forwarded(spoil)), 3)
    core.probe.at["admission.after_apply"] = lambda: applied.append([core.record(i)["place"] for i in ids])
    core.wake("admission")
    assert applied == [["admission", "admission", "engagement"], ["engagement"] * 3]


def test_a_partition_is_worked_off_in_batches_and_in_ticket_order(core: Core) -> None:
    batches: list[list[str]] = []

    def plan(ctx: Context, batch: list[tuple[Seen, Envelope]], claimed: Claimed) -> list[Move]:
        batches.append([seen.id for seen, _ in batch])
        return [outcome_move(ctx, "admission", seen, Forward("engagement")) for seen, _ in batch]

    ids = together(with_plans(core, admission=plan), BATCH + 3)
    assert core.wake("admission") == 1
    assert batches == [ids[:BATCH], ids[BATCH:]]


def test_a_wake_up_for_a_claim_that_is_held_does_nothing(core: Core) -> None:
    [one] = together(core, 1)
    name = f"admission:{core.record(one)['part']}"
    core.ctx.client.hset(core.ctx.keys.held, name, f"other|3|{one}")
    core.wake()
    assert core.end(one) == ("admission", "")
    assert core.ctx.client.hget(core.ctx.keys.held, name) == f"other|3|{one}"


@pytest.mark.parametrize(
    ("stage", "name"), [("admission", "5"), ("quotes", "nobody"), ("delivery", "nobody"), ("dispatch", "default")]
)
def test_a_wake_up_that_stands_for_nothing_does_nothing(core: Core, stage: str, name: str) -> None:
    core.run(stage, name)  # pyright: ignore[reportArgumentType]
    assert core.ctx.client.hgetall(core.ctx.keys.held) == {}
    assert core.ctx.client.keys("t:rec:*") == []


def test_a_draining_process_takes_nothing_new(core: Core) -> None:
    [one] = together(core, 1)
    core.ctx.draining = True
    core.wake()
    assert core.end(one) == ("admission", "")
    assert core.ctx.client.hgetall(core.ctx.keys.held) == {}


def test_a_partition_is_given_back_between_two_batches_when_the_process_ends(core: Core) -> None:
    ids = together(with_plans(core, admission=forwarded(unspoiled)), BATCH + 1)
    core.probe.at["admission.after_apply"] = lambda: setattr(core.ctx, "draining", True)
    core.run("admission", core.record(ids[0])["part"])
    assert [core.end(i)[0] for i in (ids[0], ids[-1])] == ["engagement", "admission"]
    assert core.ctx.client.hgetall(core.ctx.keys.held) == {}
    core.ctx.draining = False
    core.probe.at.clear()
    core.wake("admission")
    assert core.end(ids[-1])[0] == "engagement"


def test_what_was_lost_meanwhile_is_not_applied(core: Core) -> None:
    [one] = together(core, 1)

    def stolen() -> None:
        for name, value in core.ctx.client.hgetall(core.ctx.keys.held).items():
            core.ctx.client.hset(core.ctx.keys.held, name, f"thief|0|{value.rsplit('|', 1)[1]}")

    core.probe.at["admission.before_apply"] = stolen
    core.wake("admission")
    assert core.end(one) == ("admission", "")
    [held] = core.ctx.client.hvals(core.ctx.keys.held)
    assert held.startswith("thief|")


def test_after_a_server_change_no_effect_starts(core_client: redis.Redis) -> None:
    core = core_of(core_client, settings_of())
    [one] = core.publish(message())
    core.wake("admission", "engagement")
    core_client.replicaof("127.0.0.1", 1)
    core_client.replicaof("no", "one")  # promoted: a server with another replication id, as after a failover
    core.process.beats.tick()
    assert core.process.server.quiet()
    core.wake()
    assert (core.record(one)["place"], core.harness.turns) == ("dispatch", [])
    core.clock.step(30.1)
    assert not core.process.server.quiet()
    core.run("dispatch", "default")
    assert [t.id for t in core.harness.turns] == [one]


def two_wake_ups(core: Core, stage: Stage) -> tuple[list[str], str]:
    """Two messages of two chats that stand in `stage`, and the wake-up that a worker has taken for the first."""
    ids = core.publish(message(1, chat_id="a"), message(2, chat_id="b"))
    core.wake(*STAGES[: STAGES.index(stage)])
    raw = core.ctx.client.rpop(core.ctx.keys.wake(stage))
    return ids, wake_name(raw)


@pytest.mark.parametrize("stage", ["dispatch", "delivery"])
def test_who_ends_one_takes_the_next_wake_up_in_the_same_step(core: Core, stage: Stage) -> None:
    ids, name = two_wake_ups(core, stage)
    core.run(stage, name)
    assert stage not in {core.record(i)["place"] for i in ids}
    assert core.ctx.client.hgetall(core.ctx.keys.held) == {}
    core.wake()
    assert [core.end(i)[0] for i in ids] == ["answered"] * 2
    assert sorted(t.id for t in core.harness.turns) == sorted(ids)


@pytest.mark.parametrize("stage", ["dispatch", "delivery"])
def test_who_ends_takes_no_next_wake_up_when_the_process_ends(core: Core, stage: Stage) -> None:
    ids, name = two_wake_ups(core, stage)
    core.probe.at[f"{stage}.before_apply"] = lambda: setattr(core.ctx, "draining", True)
    core.run(stage, name)
    assert core.ctx.client.llen(core.ctx.keys.wake(stage)) >= 1, "for whoever comes next"
    assert [core.record(i)["place"] for i in ids].count(stage) == 1
    assert core.ctx.client.hgetall(core.ctx.keys.held) == {}


def test_a_next_turn_whose_answer_was_lost_is_asked_once_and_not_dead(core: Core) -> None:
    """The connection breaks after the server has started the next turn: the same call again is told of it."""
    ids, name = two_wake_ups(core, "dispatch")
    call, broken = core.ctx.scripts.call, list[str]()

    def once(script: str, now_ms: int, /, **arguments: object) -> object:
        reply = call(script, now_ms, **arguments)
        if script == "move" and not broken:
            broken.append(script)
            raise RedisConnectionError
        return reply

    core.ctx.scripts.call = once
    core.run("dispatch", name)
    core.wake()
    assert broken == ["move"]
    assert [core.end(i)[0] for i in ids] == ["answered"] * 2
    assert sorted(t.id for t in core.harness.turns) == sorted(ids)
