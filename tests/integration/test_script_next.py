"""What a holder goes on with in the step of its move, what send.lua allows, and what move.lua writes beside a move.

On every server that is here: Redis 7 from the system, Valkey 8 from its wheel.
"""

from collections.abc import Generator
from typing import Any

import pytest

from shared.redis.embedded import Kind, available_kinds
from tests.integration import script_scenes
from tests.integration.script_scenes import (
    P,
    Rig,
    answered,
    asking,
    moved,
    result_of,
    told,
    turn_of,
    wakes,
)
from tests.integration.world import KINDS

AHEAD_MS = 60_000
"""So far a call that names its time itself is ahead of the server, that a slow machine does not make it late."""
HERE = [kind for kind in available_kinds() if kind in KINDS]


@pytest.fixture(scope="module", params=HERE)
def any_rig(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Rig]:
    kind: Kind = request.param
    with script_scenes.rig(tmp_path_factory.mktemp("server"), kind) as made:
        yield made


@pytest.fixture
def rig(any_rig: Rig) -> Rig:
    any_rig.client.flushall()
    return any_rig


def batch_after(rig: Rig, move: dict[str, Any]) -> dict[str, Any]:
    more = {"stage": "admission", "part": "7", "limit": 1}
    return {**moved(move, holder="admission:7", token="w1", release=False), "next": more}


def turn_after(rig: Rig, id_: str, token: str, after: str) -> dict[str, Any]:
    arguments = moved(answered(rig, id_), holder=f"turn:{id_}", token=token, release=True)
    return {**arguments, "next": {"stage": "dispatch", **turn_of(after)}}


def two_lanes(rig: Rig) -> None:
    """m1 runs, m2 of another lane waits for a worker."""
    rig.running("m1")
    rig.accept("m2", lane="l2")
    rig.claim()
    rig.move(rig.frozen("m2"))


def test_a_move_brings_the_next_batch_and_the_claim_goes_on(rig: Rig) -> None:
    rig.accept("m1", "m2")
    assert rig.claim(limit=1)[4::2] == ["m1"]
    verdicts, following = rig.call("move", **batch_after(rig, rig.to("m1", "engagement")))
    assert (verdicts, following[0], following[4::2]) == (["ok"], "ok", ["m2"])
    assert rig.held("admission:7") == "w1|0|m2"


def test_a_partition_found_empty_is_given_back_and_wakes_again(rig: Rig) -> None:
    rig.accept("m1")
    rig.claim()
    assert wakes(rig, "admission") == ["7"]
    assert rig.call("move", **batch_after(rig, rig.to("m1", "engagement"))) == [["ok"], ["empty"]]
    assert rig.held("admission:7") == ""
    assert not rig.client.hexists(f"{P}woken", "admission:7")
    rig.accept("m2", "m3")
    assert wakes(rig, "admission") == ["7", "7"], "one for both"


def test_who_lost_the_claim_gets_no_next_batch(rig: Rig) -> None:
    rig.accept("m1", "m2")
    rig.claim()
    arguments = batch_after(rig, rig.to("m1", "engagement"))
    rig.client.hset(f"{P}held", "admission:7", "thief|0|m1")
    assert rig.call("move", **arguments) == [["lost"], []]
    assert rig.held("admission:7") == "thief|0|m1"


def test_a_move_starts_the_next_turn_and_asked_again_names_the_same(rig: Rig) -> None:
    two_lanes(rig)
    arguments, now = turn_after(rig, "m1", "d1", "d2"), rig.now() + AHEAD_MS
    verdicts, first = rig.scripts.call("move", now, nonce="same", **arguments)
    assert (verdicts, first[:3]) == (["ok"], ["ok", "m2", "first"])
    assert (rig.held("turn:m1"), rig.held("turn:m2")) == ("", "d2|0|m2")
    assert (rig.hget("m1", "place"), rig.hget("m2", "place")) == ("delivery", "running")
    before = rig.state()
    verdicts, again = rig.scripts.call("move", now, nonce="same", **arguments)
    assert (verdicts, again[:2], again[4:]) == (["ok"], ["ok", "m2"], first[4:])
    assert rig.state() == before


def test_asked_again_it_names_no_turn_that_was_taken_over_meanwhile(rig: Rig) -> None:
    two_lanes(rig)
    arguments, now = turn_after(rig, "m1", "d1", "d2"), rig.now() + AHEAD_MS
    rig.scripts.call("move", now, nonce="same", **arguments)
    rig.call("takeover", name="turn:m2", seen=rig.held("turn:m2"), token="keeper")
    assert rig.scripts.call("move", now, nonce="same", **arguments) == [["ok"], []]
    assert rig.call("start", harness="default", turn=turn_of("d2"), **script_scenes.LANES) == ["none"]


def test_without_another_turn_a_move_only_gives_the_slot_back(rig: Rig) -> None:
    rig.running("m1")
    rig.client.delete(f"{P}wake.dispatch")
    assert rig.call("move", **turn_after(rig, "m1", "d1", "d2")) == [["ok"], []]
    assert rig.client.hgetall(f"{P}held") == {}
    assert rig.client.zcard(f"{P}at:running:default") == 0


@pytest.mark.parametrize("stage", ["quotes", "delivery"])
def test_a_move_takes_what_the_oldest_wake_up_of_its_stage_stands_for(rig: Rig, stage: str) -> None:
    rig.accept("m1", "m2", "m3")
    rig.claim()
    for id_ in ("m1", "m2", "m3"):
        rig.move(rig.to(id_, stage, fields={"out": f"{id_}-o"}), release=False)
    rig.client.rpop(f"{P}wake.{stage}")  # as a worker does
    rig.call("take", stage=stage, id="m1", token="q1")
    arguments = moved(rig.end("m1"), holder=f"{stage}:m1", token="q1", release=True)
    verdicts, following = rig.call("move", **{**arguments, "next": {"stage": stage, "token": "q2"}})
    assert (verdicts, following[:2]) == (["ok"], ["ok", "m2"])
    assert (rig.held(f"{stage}:m1"), rig.held(f"{stage}:m2")) == ("", "q2|0|m2")
    assert wakes(rig, stage) == ["m3"]


@pytest.mark.parametrize("odd", ["", "{}", "no wake-up", '{"body":"[[\\"default\\"]]"}'])
def test_what_is_no_wake_up_is_left_for_the_workers_guard(rig: Rig, odd: str) -> None:
    two_lanes(rig)
    rig.client.rpush(f"{P}wake.dispatch", odd)
    assert rig.call("move", **turn_after(rig, "m1", "d1", "d2")) == [["ok"], []]
    assert rig.client.lindex(f"{P}wake.dispatch", -1) == odd
    assert rig.hget("m2", "place") == "dispatch"


def test_a_lanes_next_turn_does_not_start_before_the_first_has_ended(rig: Rig) -> None:
    rig.ready("m1", "m2")
    rig.start()
    verdicts, following = rig.call("move", **turn_after(rig, "m1", "d1", "d2"))
    assert (verdicts, following[:1]) in ((["ok"], []), (["ok"], ["none"]))
    assert rig.hget("m2", "place") == "parked:lane"
    rig.call("take", stage="delivery", id="m1", token="s1")
    rig.move(rig.end("m1"), holder="delivery:m1", token="s1")
    assert rig.start("d3")[:2] == ["ok", "m2"]


def test_a_part_is_allowed_once_and_the_same_call_again_is_told_the_same(rig: Rig) -> None:
    rig.sending("m1")
    rates = [[f"{P}rate:x", 60_000, 0]]
    assert rig.call("send", **asking("m1", rates=rates)) == ["yes"]
    state = rig.client.hget(f"{P}ledger:m1-o", "0")
    assert state.startswith("intent|s1|")
    assert rig.call("send", **asking("m1", rates=rates)) == ["yes"], "its own intent, at no second cost"
    assert rig.client.hget(f"{P}ledger:m1-o", "0") == state
    assert rig.client.zrange(f"{P}busy:a", 0, -1) == ["delivery:m1"]


def test_r48_anothers_intent_forbids_the_send(rig: Rig) -> None:
    rig.sending("m1")
    rig.client.hset(f"{P}ledger:m1-o", "0", "intent|dead|5|")
    before = rig.state()
    assert rig.call("send", **asking("m1")) == ["intent"]
    assert rig.state() == before


@pytest.mark.parametrize(("state", "reply"), [("sent", "sent"), ("unknown", "unknown"), ("not-sent", "yes")])
def test_only_what_was_certainly_not_sent_may_be_sent_again(rig: Rig, state: str, reply: str) -> None:
    rig.sending("m1")
    rig.client.hset(f"{P}ledger:m1-o", "0", f"{state}|other|5|")
    assert rig.call("send", **asking("m1")) == [reply]


def test_nothing_is_sent_without_the_claim(rig: Rig) -> None:
    rig.sending("m1")
    before = rig.state()
    assert rig.call("send", **asking("m1", token="s2")) == ["lost"]
    assert rig.call("send", **asking("m1", holder="delivery:m9")) == ["lost"]
    assert rig.state() == before


@pytest.mark.parametrize("seen", [[], ["paused", "0"], ["paused", "1", "read_only", "1"]])
def test_r21_other_switches_than_the_caller_saw_forbid_the_send(rig: Rig, seen: list[str]) -> None:
    rig.sending("m1")
    rig.client.hset(f"{P}switches", "paused", "1")
    before = rig.state()
    assert rig.call("send", **asking("m1", switches=seen)) == ["switched", ["paused", "1"]]
    assert rig.state() == before
    assert rig.call("send", **asking("m1", switches=["paused", "1"])) == ["yes"], "what they mean is the caller's part"


def test_r21_a_switch_that_was_removed_is_seen_too(rig: Rig) -> None:
    rig.sending("m1")
    assert rig.call("send", **asking("m1", switches=["paused", "1"])) == ["switched", []]


def test_a_rate_or_a_full_account_lets_wait_and_writes_no_intent(rig: Rig) -> None:
    rig.sending("m1")
    rig.client.set(f"{P}rate:x", rig.now() + 60_000)
    word, wait = rig.call("send", **asking("m1", rates=[[f"{P}rate:x", 1_000, 0]]))
    assert word == "wait"
    assert 59_000 <= wait <= 60_000
    rig.client.zadd(f"{P}busy:a", {"other": rig.now() + 60_000})
    assert rig.call("send", **asking("m1", most=1)) == ["wait", 200]
    assert not rig.client.exists(f"{P}ledger:m1-o")


def claiming(rig: Rig, id_: str, *keys: str) -> dict[str, Any]:
    return {**rig.to(id_, "engagement"), "claims": [f"{P}dup:{k}" for k in keys], "claim": f"{id_}|x"}


def test_g66_all_keys_are_claimed_or_none(rig: Rig) -> None:
    rig.accept("m1", "m2")
    rig.claim()
    first, second = claiming(rig, "m1", "a", "b"), claiming(rig, "m2", "c", "b")
    assert rig.move(first, second, release=False) == ["ok", "guard:0"]
    assert rig.client.mget(f"{P}dup:a", f"{P}dup:b", f"{P}dup:c") == ["m1|x", "m1|x", None]
    assert rig.hget("m2", "place") == "admission"


def test_keys_that_are_its_own_are_no_hindrance(rig: Rig) -> None:
    """A message that goes through admission a second time, one of whose keys is new."""
    rig.accept("m1")
    rig.claim()
    rig.client.set(f"{P}dup:a", "m1|before")
    assert rig.move(claiming(rig, "m1", "a", "b")) == ["ok"]
    assert rig.client.mget(f"{P}dup:a", f"{P}dup:b") == ["m1|before", "m1|x"]


def test_a_move_that_fails_claims_nothing(rig: Rig) -> None:
    rig.accept("m1")
    rig.claim()
    rig.client.set(f"{P}wrong", "a string")
    rig.client.set(f"{P}dup:a", "m1|before")
    spoilt = {**claiming(rig, "m1", "a", "b"), "effects": [["HSET", f"{P}wrong", "a", 1]]}
    [verdict] = rig.move(spoilt, release=False)
    assert verdict.startswith("failed:")
    assert rig.client.mget(f"{P}dup:a", f"{P}dup:b") == ["m1|before", None]


@pytest.mark.parametrize("state", ["sent", "not-sent", "unknown"])
def test_what_became_of_a_send_is_written_although_the_claim_is_lost(rig: Rig, state: str) -> None:
    rig.sending("m1")
    rig.call("send", **asking("m1"))
    ends = {**rig.end("m1"), "result": result_of("m1", state)}
    rig.call("takeover", name="delivery:m1", seen=rig.held("delivery:m1"), token="keeper")
    assert rig.move(ends, holder="delivery:m1", token="s1") == ["lost"]
    assert rig.client.hget(f"{P}ledger:m1-o", "0").split("|")[:2] == [state, "s1"]
    assert rig.hget("m1", "place") == "delivery"
    assert rig.held("delivery:m1") == "keeper|0|m1"


def test_a_result_overwrites_no_other_workers_intent_unless_it_was_sent(rig: Rig) -> None:
    rig.sending("m1")
    rig.client.hset(f"{P}ledger:m1-o", "0", "intent|other|5|")
    assert rig.call("ledger", **told("m1", "not-sent")) == "intent"
    assert rig.call("ledger", **told("m1", "unknown")) == "intent"
    assert rig.client.hget(f"{P}ledger:m1-o", "0") == "intent|other|5|"
    assert rig.call("ledger", **told("m1", "sent")) == "sent"
    assert rig.call("ledger", **told("m1", "unknown")) == "sent", "sent stays sent"


def test_bounds_are_kept_after_all_effects_and_spoil_no_move(rig: Rig) -> None:
    rig.accept("m1", "m2")
    rig.claim()
    rig.client.set(f"{P}wrong", "a string")
    moves = [rig.to(id_, "engagement", effects=[["LPUSH", f"{P}log:c", id_]]) for id_ in ("m1", "m2")]
    arguments = moved(*moves, holder="admission:7", token="w1", release=True)
    tidy = [["LTRIM", f"{P}wrong", 0, 0], ["LTRIM", f"{P}log:c", 0, 0], ["PEXPIRE", f"{P}log:c", 60_000]]
    assert rig.call("move", **arguments, tidy=tidy)[0] == ["ok", "ok"]
    assert rig.client.lrange(f"{P}log:c", 0, -1) == ["m2"]
    assert 0 < rig.client.pttl(f"{P}log:c") <= 60_000


def session_at(rig: Rig, id_: str, now: int, fresh: str, idle_ms: int = 0) -> str:
    """The session with which a turn of lane l1 starts at `now`; the turn then ends."""
    rig.accept(id_)
    rig.claim()
    rig.move(rig.frozen(id_))
    turn = turn_of(f"d-{id_}", fresh, idle_ms)
    reply = rig.scripts.call("start", now, harness="default", turn=turn, **script_scenes.LANES)
    assert reply[:2] == ["ok", id_]
    rig.move(rig.end(id_), holder=f"turn:{id_}", token=f"d-{id_}")
    return reply[6]


def test_a_lane_is_bound_to_its_first_session(rig: Rig) -> None:
    now = rig.now() + AHEAD_MS
    assert session_at(rig, "m1", now, "one") == "one"
    assert session_at(rig, "m2", now + 1, "two") == "one"
    assert rig.client.hget(f"{P}session:bound:l1", "session") == "one"
    assert 0 < rig.client.pttl(f"{P}session:bound:l1") <= 60_000
    rig.client.delete(f"{P}session:bound:l1")
    assert session_at(rig, "m3", now + 2, "fresh") == "fresh"


def test_an_idle_session_is_followed_by_a_new_one(rig: Rig) -> None:
    now = rig.now() + AHEAD_MS
    assert session_at(rig, "m1", now, "s", 60_000) == "s"
    assert session_at(rig, "m2", now + 60_000, "later", 60_000) == "s"
    assert session_at(rig, "m3", now + 120_001, "later", 60_000) == "later"


def test_idle_counts_from_the_end_of_the_last_turn(rig: Rig) -> None:
    now = rig.now() + AHEAD_MS
    session_at(rig, "m1", now, "s", 60_000)
    rig.client.hset(f"{P}session:s:meta", "ended_ms", now + 600_000)
    assert session_at(rig, "m2", now + 660_000, "later", 60_000) == "s"


def test_a_session_is_never_idle_by_default(rig: Rig) -> None:
    now = rig.now() + AHEAD_MS
    session_at(rig, "m1", now, "s")
    assert session_at(rig, "m2", now + 20 * 86_400_000, "later") == "s"


def test_two_starts_of_a_turn_get_one_session(rig: Rig) -> None:
    """The second worker has its own fresh id, and finds the turn's lane bound."""
    rig.running("m1")
    rig.move(
        rig.to("m1", "due", score=0, fields={"back": "dispatch"}, lane_state="ready"), holder="turn:m1", token="d1"
    )
    rig.call("fire", limit=9, **script_scenes.LANES)
    assert rig.start("d2", fresh="s2")[6] == "s1"


def test_who_finds_a_partition_empty_takes_the_one_that_the_oldest_wake_up_names(rig: Rig) -> None:
    rig.accept("m1")
    other = script_scenes.accepted("m2", lane="l2")
    other["items"][0]["part"] = "8"
    rig.call("accept", **other)
    rig.claim()
    rig.client.rpop(f"{P}wake.admission")  # the wake-up of partition 7 was what brought the worker
    more = {"stage": "admission", "part": "7", "limit": 64, "after": "w2"}
    arguments = script_scenes.moved(rig.end("m1"), holder="admission:7", token="w1", release=False)
    verdicts, following = rig.call("move", **arguments, next=more)
    assert (verdicts, following[:2], following[4::2]) == (["ok"], ["ok", "8"], ["m2"])
    assert (rig.held("admission:7"), rig.held("admission:8")) == ("", "w2|0|m2")
    assert script_scenes.wakes(rig, "admission") == []
