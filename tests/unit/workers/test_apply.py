"""What an outcome comes to as a move, and what a move leaves behind, over a real server."""

import json
from typing import Any

import pytest
from core_world import NOW_MS, Core, message, settings_of

from shared.errors import Transient
from shared.harness.port import HarnessRefused
from shared.outcome import Dead, Finish, Forward, Outcome, Park, Retry
from workers.apply import SILENT, SILENT_MAX, Seen, apply, outcome_move, read_envelope
from workers.moves import Move

MARK = "MARKTEXT"


def seen(**fields: str) -> Seen:
    return Seen("E1", {"step": "4", "account": "demo", "channel": "mock", "at": str(NOW_MS), **fields})


def rows(move: Move) -> list[dict[str, Any]]:
    return [json.loads(line) for line in str(move.fields["log"]).splitlines()]


def test_forward_and_park_name_the_place(core: Core) -> None:
    forward = outcome_move(core.ctx, "admission", seen(), Forward("engagement"))
    assert (forward.to, forward.step, forward.end) == ("engagement", 4, None)
    park = outcome_move(core.ctx, "delivery", seen(), Park("pause", "paused"))
    assert (park.to, park.fields["back"]) == ("parked:pause", "delivery")
    assert outcome_move(core.ctx, "dispatch", seen(), Park("order"), back="x").fields["back"] == "x"


def test_only_the_gate_gives_an_answered_message_its_reason(core: Core) -> None:
    said = Forward("quotes", "rule.addressed")
    assert outcome_move(core.ctx, "engagement", seen(), said).fields["why"] == "rule.addressed"
    assert "why" not in outcome_move(core.ctx, "quotes", seen(), Forward("dispatch", "none")).fields


@pytest.mark.parametrize("before", [0, 1, 2, 3])
def test_p9_a_counted_retry_waits_in_due_and_comes_back_to_its_stage(core: Core, before: int) -> None:
    move = outcome_move(core.ctx, "dispatch", seen(attempt=str(before)), Retry("harness-transient"))
    assert (move.to, move.fields["attempt"], move.fields["back"]) == ("due", before + 1, "dispatch")
    assert move.score is not None
    assert NOW_MS <= move.score <= NOW_MS + 1_000 * 2**before


def test_p9_the_fifth_failed_try_is_the_last(core: Core) -> None:
    move = outcome_move(core.ctx, "dispatch", seen(attempt="4"), Retry("harness-transient"))
    assert move.end == ("dead", "attempts-exhausted", "dispatch")
    assert rows(move)[-1] | {"at": 0} == {
        "stage": "dispatch", "outcome": "dead", "reason": "attempts-exhausted", "at": 0, "attempt": 5, "version": 1,
    }  # fmt: skip
    letter = next(e for e in move.effects if e[0] == "HSET")
    fields = dict(zip(letter[2::2], letter[3::2], strict=True))
    assert (fields["attempts"], fields["error"], fields["reason"]) == (5, "harness-transient", "attempts-exhausted")


@pytest.mark.parametrize("attempt", ["0", "4", "9"])
def test_a_wait_that_does_not_count_never_exhausts(core: Core, attempt: str) -> None:
    move = outcome_move(core.ctx, "delivery", seen(attempt=attempt), Retry("rate-limited", 2.5, counts=False))
    assert (move.end, move.to, move.score) == (None, "due", NOW_MS + 2_500)
    assert move.fields["attempt"] == int(attempt)


def test_what_the_other_side_asked_for_wins_over_our_backoff(core: Core) -> None:
    move = outcome_move(core.ctx, "dispatch", seen(), Retry("harness-transient", 90))
    assert move.score == NOW_MS + 90_000


def test_a_wait_that_repeats_is_one_row_and_every_try_is_its_own(core: Core) -> None:
    log = ""
    for _ in range(3):
        log = str(
            outcome_move(core.ctx, "delivery", seen(log=log), Retry("rate-limited", 1, counts=False)).fields["log"]
        )
    assert [json.loads(line)["reason"] for line in log.splitlines()] == ["rate-limited"]
    log = ""
    for attempt in range(3):
        before = seen(log=log, attempt=str(attempt))
        log = str(outcome_move(core.ctx, "dispatch", before, Retry("harness-transient")).fields["log"])
    assert [json.loads(line).get("attempt", 0) for line in log.splitlines()] == [0, 1, 2]


def test_the_end_always_has_its_own_row(core: Core) -> None:
    first = outcome_move(core.ctx, "delivery", seen(), Dead("delivery-unknown", "a"))
    again = outcome_move(core.ctx, "delivery", seen(log=str(first.fields["log"])), Dead("delivery-unknown", "a"))
    assert len(rows(again)) == 2


def test_a_row_names_the_version_of_the_configuration_and_the_evidence(core: Core) -> None:
    core.process.versions.apply(settings_of({"pipeline": {"lane_max": 3}}), "anna", NOW_MS)
    core.process.config.refresh()
    move = outcome_move(core.ctx, "quotes", seen(), Forward("dispatch", "none"), evidence=[("provenance", "index-id")])
    [row] = rows(move)
    assert (row["version"], row["provenance"]) == (2, "index-id")


@pytest.mark.parametrize("disposition", sorted(SILENT))
def test_a_silent_end_goes_to_the_accounts_capped_stream(core: Core, disposition: Any) -> None:
    before = seen(log='{"stage":"admission","outcome":"forward","reason":"","at":1,"version":1}\n', role="guest")
    move = outcome_move(core.ctx, "engagement", before, Finish(disposition, "no_signal"))
    assert "log" not in move.fields
    assert set(move.drop) >= {"log", "role", "why"}
    [stream] = [e for e in move.effects if e[0] == "XADD"]
    assert list(stream[:5]) == ["XADD", core.ctx.keys.silent("demo"), "MAXLEN", "~", SILENT_MAX]
    assert str(stream[-1]).count("\n") == 2


def test_g66_a_duplicate_leaves_an_end_mark_and_a_row_in_the_stream(core: Core) -> None:
    first, second = core.publish(message(1), message(1))
    core.wake()
    assert core.end(first) == ("answered", "owner.private")
    assert core.end(second) == ("duplicate", "duplicate")
    assert not {"env", "log", "role"} & set(core.record(second))
    assert 0 < core.ctx.client.pttl(core.ctx.keys.record(second)) <= 3_600_000
    assert 3_600_000 < core.ctx.client.pttl(core.ctx.keys.record(first)) <= 604_800_000
    [(_, row)] = core.ctx.client.xrange(core.ctx.keys.silent("demo"))
    assert row["id"] == second


def test_x10_decisions_and_letters_hold_no_text(core: Core) -> None:
    core.harness.script = [HarnessRefused("400: no such model")]
    dead, alive = core.publish(message(1, text=f"{MARK} one"), message(2, text=f"{MARK} two"))
    core.wake()
    assert (core.end(dead)[0], core.end(alive)[0]) == ("dead", "answered")
    assert MARK not in core.record(alive)["log"] + core.record(dead)["log"]
    assert MARK not in json.dumps(core.ctx.client.hgetall(core.ctx.keys.letter(dead)))
    assert MARK in core.record(dead)["env"]
    assert "env" not in core.record(alive)


def test_every_failed_try_is_seen_until_the_turn_is_dead(core: Core) -> None:
    core.harness.script = [Transient("503")] * 5
    [one] = core.publish(message())
    core.wake()
    for _ in range(4):
        assert core.record(one)["place"] == "due"
        core.clock.step(300)
        core.ctx.scripts.call("fire", core.ctx.now_ms(), limit=256, slots={"default": 32}, order_wait_ms=10_000)
        core.ctx.client.delete(core.ctx.keys.harness("default"))
        core.wake()
    assert core.end(one) == ("dead", "attempts-exhausted")
    assert [(r["outcome"], r.get("attempt", 0)) for r in core.rows(one)[2:]] == [
        ("retry", 0), ("retry", 1), ("retry", 2), ("retry", 3), ("dead", 5),
    ]  # fmt: skip
    assert core.ctx.client.hget(core.ctx.keys.letter(one), "attempts") == "5"
    assert len(core.harness.turns) == 5


@pytest.mark.parametrize("env", ["", "{", "null", '{"id":"E1"}', '{"version":1,"id":5}', "\ufffd"])
def test_what_is_no_envelope_is_a_dead_letter(core: Core, env: str) -> None:
    moves: list[Move] = []
    assert read_envelope(core.ctx, "admission", seen(env=env), moves) is None
    [move] = moves
    assert move.end == ("dead", "unreadable", "admission")


@pytest.mark.parametrize(
    ("age_ms", "outcome"), [(0, "due"), (600_000, "due"), (600_001, ("dead", "newer-version", "quotes"))]
)
def test_a_newer_version_waits_ten_minutes_for_an_up_to_date_worker(core: Core, age_ms: int, outcome: Any) -> None:
    moves: list[Move] = []
    before = seen(env='{"version":2,"id":"E1","something":"new"}', at=str(NOW_MS - age_ms), attempt="4")
    assert read_envelope(core.ctx, "quotes", before, moves) is None
    [move] = moves
    assert (move.end or move.to) == outcome
    if move.end is None:
        assert (move.score, move.fields["attempt"], move.fields["back"]) == (NOW_MS + 5_000, 4, "quotes")


def test_a_readable_envelope_adds_no_move(core: Core) -> None:
    [one] = core.publish(message())
    moves: list[Move] = []
    envelope = read_envelope(core.ctx, "admission", core.seen(one), moves)
    assert envelope is not None
    assert (envelope.id, moves) == (one, [])


def test_a_move_without_the_claim_is_lost(core: Core) -> None:
    [one] = core.publish(message())
    move = outcome_move(core.ctx, "admission", core.seen(one), Finish("ignored", "empty"))
    assert apply(core.ctx, [move, move], holder="admission:1", token="mine") == (["lost", "lost"], [])
    assert core.end(one) == ("admission", "")


def test_a_move_seen_from_an_old_step_does_nothing(core: Core) -> None:
    [one] = core.publish(message())
    old = core.seen(one)
    assert apply(core.ctx, [outcome_move(core.ctx, "admission", old, Forward("engagement"))]).verdicts == ["ok"]
    assert apply(core.ctx, [outcome_move(core.ctx, "admission", old, Finish("ignored", "empty"))]).verdicts == ["stale"]
    assert core.end(one) == ("engagement", "")


@pytest.mark.parametrize("outcome", [Finish("silenced", "no_signal"), Finish("command", "command"), Dead("gave-up")])
def test_an_end_takes_its_message_out_of_every_place(core: Core, outcome: Outcome) -> None:
    [one] = core.publish(message())
    assert apply(core.ctx, [outcome_move(core.ctx, "admission", core.seen(one), outcome)]).verdicts == ["ok"]
    client, keys = core.ctx.client, core.ctx.keys
    record = core.record(one)
    assert client.zscore(keys.at("admission", record["part"]), one) is None
    assert client.zscore(keys.lane(record["lane"], "pending"), one) is None
    assert client.hget(keys.depth, "*") == "0"
    dead = isinstance(outcome, Dead)
    assert ("env" in record) is dead
    assert (client.pttl(keys.record(one)) == -1) is dead
