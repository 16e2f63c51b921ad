"""The elected housekeeper at work, over a real server (design.md, section 3)."""

import json

import pytest
import redis
from core_world import NOW_MS, Core, Told, core_of, message, settings_of
from prometheus_client import Gauge

from shared import metrics
from shared.outcome import Finish, Retry, Stage
from workers.apply import apply, outcome_move
from workers.keeper.facts import gauges
from workers.keeper.keeper import Keeper

LEASE_S, CLAIM_S = 30.0, 3.0


def keeper(core: Core) -> Keeper:
    return Keeper(core.ctx, scan=False)


def due(core: Core, id_: str, after_s: float) -> None:
    move = outcome_move(core.ctx, "admission", core.seen(id_), Retry("rate-limited", after_s, counts=False))
    assert apply(core.ctx, [move]).verdicts == ["ok"]


def test_one_of_two_keeps(core: Core) -> None:
    first, second = keeper(core), keeper(core)
    first.tick()
    second.tick()
    assert (first.elected, second.elected) == (True, False)


def test_a_keeper_that_beats_is_never_taken_over(core: Core) -> None:
    first, second = keeper(core), keeper(core)
    first.tick()
    name, token = first.lease()
    with core.process.beats.holding(name, token, LEASE_S, float("inf")):
        for _ in range(90):
            core.clock.step(1)
            core.process.beats.tick()
            second.tick()
    assert not second.elected


def test_a_standby_takes_over_after_watching_a_whole_lease_of_silence(core: Core) -> None:
    first, second = keeper(core), keeper(core)
    first.tick()
    core.clock.step(1_000)
    second.tick()
    core.clock.step(LEASE_S)
    second.tick()
    assert not second.elected
    core.clock.step(0.1)
    second.tick()
    assert second.elected
    first.tick()
    assert not first.elected


def test_only_one_of_two_standbys_takes_over(core: Core) -> None:
    keeper(core).tick()
    standbys = [keeper(core), keeper(core)]
    for seconds in (1, LEASE_S + 0.1):
        core.clock.step(seconds)
        for one in standbys:
            one.tick()
    assert sorted(one.elected for one in standbys) == [False, True]


def test_what_is_due_goes_back_to_its_stage_and_not_before(core: Core) -> None:
    one, two = core.publish(message(1), message(2))
    due(core, one, 5)
    due(core, two, 6)
    one_keeper = keeper(core)
    assert one_keeper.tick() == 0
    core.clock.step(4.999)
    assert one_keeper.tick() == 0
    core.clock.step(0.001)
    assert one_keeper.tick() == 1
    assert (core.record(one)["place"], core.record(two)["place"]) == ("admission", "due")
    core.wake()
    assert core.end(one) == ("answered", "owner.private")


def test_nobody_but_the_keeper_moves_what_is_due(core: Core) -> None:
    [one] = core.publish(message())
    due(core, one, 1)
    keeper(core).tick()
    core.clock.step(2)
    assert keeper(core).tick() == 0
    assert core.record(one)["place"] == "due"


def held_by_the_dead(core: Core, stage: str, name: str, ids: list[str]) -> None:
    core.ctx.client.hset(core.ctx.keys.held, f"{stage}:{name}", f"dead|4|{','.join(ids)}")


def silence(core: Core, one: Keeper, seconds: float) -> None:
    one.tick()
    core.clock.step(seconds + 0.1)
    one.tick()


def test_a_claim_whose_worker_died_comes_back_counted(core: Core) -> None:
    ids = core.publish(message(1), message(2))
    part = core.record(ids[0])["part"]
    held_by_the_dead(core, "admission", part, ids)
    core.ctx.client.delete(core.ctx.keys.wake("admission"))
    silence(core, keeper(core), CLAIM_S)
    assert [core.record(i)["takeovers"] for i in ids] == ["1", "1"]
    assert not core.ctx.client.hexists(core.ctx.keys.held, f"admission:{part}")
    core.wake()
    assert [core.end(i)[0] for i in ids] == ["answered", "answered"]


def test_an_id_that_kills_its_workers_is_a_dead_letter_after_max_takeovers(core: Core) -> None:
    [one] = core.publish(message())
    part, one_keeper = core.record(one)["part"], keeper(core)
    for count in range(1, 6):
        held_by_the_dead(core, "admission", part, [one])
        silence(core, one_keeper, CLAIM_S)
        assert (core.record(one)["takeovers"], core.record(one)["place"]) == (str(count), "admission")
    held_by_the_dead(core, "admission", part, [one])
    silence(core, one_keeper, CLAIM_S)
    assert core.end(one) == ("dead", "crash-loop")
    core.wake()
    assert core.end(one) == ("dead", "crash-loop")


def running(core: Core) -> str:
    """A message whose turn runs and whose worker is dead."""
    [one] = core.publish(message())
    core.wake("admission", "engagement")
    assert core.start()[1] == one
    return one


def test_a_turn_whose_worker_died_is_effect_unknown(core: Core) -> None:
    one = running(core)
    silence(core, keeper(core), LEASE_S)
    core.wake()
    assert core.end(one) == ("dead", "effect-unknown")
    assert core.harness.turns == []


def test_a_turn_of_an_idempotent_harness_is_repeated_with_the_same_id(core: Core) -> None:
    core.harness.idempotent = True
    one = running(core)
    silence(core, one_keeper := keeper(core), LEASE_S)
    one_keeper.tick()
    core.wake()
    assert core.end(one) == ("answered", "owner.private")
    assert [(t.id, t.attempt) for t in core.harness.turns] == [(one, 1)]


def test_a_turn_with_a_stored_url_is_polled_on(core: Core) -> None:
    one = running(core)
    core.ctx.client.hset(core.ctx.keys.record(one), "url", "https://h/turns/1")
    silence(core, one_keeper := keeper(core), LEASE_S)
    one_keeper.tick()
    core.wake()
    assert core.end(one) == ("answered", "owner.private")


def test_a_turn_that_stop_had_marked_is_cancelled(core: Core) -> None:
    one = running(core)
    core.ctx.client.hset(core.ctx.keys.record(one), "cancel", 1)
    silence(core, keeper(core), LEASE_S)
    assert core.end(one) == ("cancelled", "stop")


def test_p14_after_a_dead_turn_the_next_of_the_lane_runs(core: Core) -> None:
    one = running(core)
    [two] = core.publish(message(2))
    core.wake()
    assert core.record(two)["place"] == "parked:lane"
    silence(core, keeper(core), LEASE_S)
    core.wake()
    assert (core.end(one)[1], core.end(two)[0]) == ("effect-unknown", "answered")


def test_one_id_that_cannot_be_decided_does_not_end_the_housekeeping(core: Core) -> None:
    one = running(core)
    [two] = core.publish(message(2, chat_id="b"))
    held_by_the_dead(core, "admission", core.record(two)["part"], [two])

    def broken(_: str) -> Told:
        raise ZeroDivisionError

    core.ctx.harness = broken
    one_keeper = keeper(core)
    silence(core, one_keeper, LEASE_S)
    assert one_keeper.elected
    assert core.record(two)["takeovers"] == "1"
    assert core.record(one)["place"] == "running"


def test_r48_a_send_whose_worker_died_is_unknown_and_not_repeated(core: Core) -> None:
    [one] = core.publish(message())
    core.wake("admission", "engagement", "dispatch")
    out = core.record(one)["out"]
    core.ctx.client.hset(core.ctx.keys.ledger(out), "0", f"intent|dead|{NOW_MS}|")
    held_by_the_dead(core, "delivery", one, [one])
    silence(core, keeper(core), LEASE_S)
    core.wake()
    assert core.end(one) == ("dead", "delivery-unknown")


STAGES: tuple[Stage, ...] = ("admission", "engagement", "quotes", "dispatch", "delivery")


def lost(core: Core, stage: Stage) -> str:
    """A message that stands in a stage whose wake-ups are gone."""
    [one] = core.publish(message(reply_to={"message_id": "9", "content": "x"}))
    for earlier in STAGES[: STAGES.index(stage)]:
        core.wake(earlier)
    assert core.ctx.client.delete(core.ctx.keys.wake(stage)) == 1
    return one


@pytest.mark.parametrize("stage", ["admission", "engagement", "quotes", "delivery"])
def test_a_lost_wake_up_is_pushed_again_after_reconcile_s(core: Core, stage: Stage) -> None:
    one, one_keeper = lost(core, stage), keeper(core)
    one_keeper.tick()
    core.clock.step(2)
    one_keeper.tick()
    assert core.wake() == 0
    core.clock.step(2)
    one_keeper.tick()
    core.wake()
    assert core.end(one) == ("answered", "owner.private")


def test_wake_ups_of_dispatch_whose_list_is_gone_are_pushed_again(core: Core) -> None:
    one, one_keeper = lost(core, "dispatch"), keeper(core)
    core.clock.step(2.1)
    one_keeper.tick()
    core.wake()
    assert core.end(one) == ("answered", "owner.private")


def test_a_wake_up_that_is_on_its_way_is_not_pushed_again(core: Core) -> None:
    core.publish(message())
    one_keeper = keeper(core)
    for _ in range(5):
        core.clock.step(2.1)
        one_keeper.tick()
    assert core.ctx.client.llen(core.ctx.keys.wake("admission")) == 1


def test_what_waited_for_a_pause_goes_on_when_it_is_lifted(core: Core) -> None:
    core.ctx.switches.write("paused", True, "anna", NOW_MS)
    ids = core.publish(message(1), message(2, chat_id="b", sender_id="anna"))
    core.wake()
    one_keeper = keeper(core)
    one_keeper.tick()
    assert core.ctx.client.zcard(core.ctx.keys.at("parked:pause")) == 2
    core.ctx.switches.write("paused", False, "anna", NOW_MS)
    core.clock.step(1)
    assert one_keeper.tick() == 2
    core.wake()
    assert [core.end(i)[0] for i in ids] == ["answered"] * 2


def test_the_slow_scan_puts_back_what_stands_in_no_place(core: Core) -> None:
    [one] = core.publish(message())
    part = core.record(one)["part"]
    core.ctx.client.zrem(core.ctx.keys.at("admission", part), one)
    core.wake()
    assert core.end(one) == ("admission", "")
    scanning = Keeper(core.ctx)
    for _ in range(20):
        scanning.tick()
        core.clock.step(1)
    core.wake()
    assert core.end(one) == ("answered", "owner.private")


def shown(gauge: Gauge, *labels: str) -> float:
    """What a scrape would see."""
    return next(s.value for m in gauge.collect() for s in m.samples if tuple(s.labels.values()) == labels)


def test_the_gauges_show_the_stage_sets_and_not_celerys_lists(core_client: redis.Redis) -> None:
    core = core_of(core_client, settings_of())
    core.publish(message(1))
    core.clock.step(60)
    ids = core.publish(message(2), message(3))
    due(core, ids[1], 100)
    core_client.delete(core.ctx.keys.wake("admission"))
    gauges(core.ctx)
    assert shown(metrics.queue_depth, "admission") == 2
    assert shown(metrics.queue_oldest, "admission") == NOW_MS / 1000
    assert shown(metrics.broker_depth, "admission") == 0
    assert shown(metrics.due_depth, "admission") == 1
    assert shown(metrics.queue_depth, "quotes") == 0
    assert shown(metrics.queue_oldest, "quotes") == 0


def test_the_gauges_show_what_waits_and_what_died(core: Core) -> None:
    running(core)
    core.publish(message(2))
    core.wake("admission", "engagement")
    [dead] = core.publish(message(3, chat_id="c"))
    core.ctx.client.hset(core.ctx.keys.record(dead), "env", "{")
    core.wake("admission")
    gauges(core.ctx)
    assert shown(metrics.queue_depth, "dispatch") == 1
    assert shown(metrics.parked_depth, "lane") == 1
    assert shown(metrics.lane_depth) == 1
    assert shown(metrics.dead_letter_depth, "admission") == 1
    assert shown(metrics.dead_letter_oldest, "admission") == NOW_MS / 1000


def test_an_end_is_not_taken_over(core: Core) -> None:
    [one] = core.publish(message())
    held_by_the_dead(core, "admission", core.record(one)["part"], [one])
    apply(core.ctx, [outcome_move(core.ctx, "admission", core.seen(one), Finish("ignored", "empty"))])
    silence(core, keeper(core), CLAIM_S)
    assert "takeovers" not in core.record(one)
    assert json.loads(core.ctx.client.xrange(core.ctx.keys.silent("demo"))[0][1]["log"])["reason"] == "empty"
