"""A script that is repeated, or delivered after its caller gave up, changes nothing; and what accept refuses.

On every server that is here: Redis 7 from the system, Valkey 8 from its wheel.
"""

from collections.abc import Generator
from pathlib import Path

import pytest
from redis.exceptions import ResponseError

from shared.errors import Refused
from shared.process import build
from shared.redis.embedded import Kind, available_kinds
from shared.settings import from_mapping
from tests.integration import script_scenes
from tests.integration.script_scenes import KEEP, LANES, LATE_MS, SCENES, P, Rig, asking, result_of, turn_of, wakes
from tests.integration.world import KINDS, eventually, server

HERE = [kind for kind in available_kinds() if kind in KINDS]


@pytest.fixture(scope="module", params=HERE)
def any_rig(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Rig]:
    kind: Kind = request.param
    with script_scenes.rig(tmp_path_factory.mktemp("server"), kind) as made:
        yield made


@pytest.fixture
def rig(any_rig: Rig) -> Rig:
    any_rig.client.config_set("maxmemory", 0)
    any_rig.client.flushall()
    return any_rig


@pytest.mark.parametrize("scene", SCENES)
def test_a_repeated_script_and_one_that_comes_late_change_nothing(scene: str, rig: Rig) -> None:
    name, arguments, later = SCENES[scene](rig)
    before, now = rig.state(), rig.now()
    first = rig.scripts.call(name, now, nonce="same", **arguments)
    after = rig.state()
    assert after != before, "this scene has an effect"
    again = rig.scripts.call(name, now, nonce="same", **arguments)
    assert rig.state() == after
    if scene == "move_next_turn":  # as start: the same turn, called `again`
        assert [again[0], again[1][:2], again[1][4:]] == [first[0], ["ok", "m2"], first[1][4:]]
    elif name in ("claim", "take", "move", "send", "ledger", "reopen", "takeover", "hold"):
        assert again == first, "asked again with the same token or nonce it answers the same"
    later()
    eventually(lambda: rig.now() - now > LATE_MS)
    then = rig.state()
    assert then != after, "more has happened meanwhile"
    if name in ("claim", "take"):
        return  # see test_a_claim_that_comes_late_does_no_harm
    rig.scripts.call(name, now, nonce="same", **arguments)
    assert rig.state() == then


def test_a_start_that_is_asked_again_names_the_same_turn(rig: Rig) -> None:
    rig.ready("m1", "m2")
    first, again = rig.start(), rig.start()
    assert (first[0], first[1]) == (again[0], again[1]) == ("ok", "m1")


def test_a_lease_start_or_send_that_comes_late_is_nobodys(rig: Rig) -> None:
    rig.sending("m1")
    rig.accept("m2", lane="l2")
    rig.claim()
    rig.move(rig.frozen("m2"))
    now = rig.now()
    eventually(lambda: rig.now() - now > LATE_MS)
    before = rig.state()
    assert rig.scripts.call("hold", now, name="keeper", token="k9") == 0
    assert rig.scripts.call("start", now, harness="default", turn=turn_of("d9"), **LANES) == ["none"]
    assert rig.scripts.call("send", now, **asking("m1")) == ["lost"]
    assert rig.state() == before


def test_a_claim_that_comes_late_does_no_harm(rig: Rig) -> None:
    """Nobody beats for it: it is taken over like a dead worker's, and its ids were never out of their place."""
    rig.accept("m1")
    now = rig.now()
    eventually(lambda: rig.now() - now > LATE_MS)
    claim = {"stage": "admission", "part": "7", "token": "gone", "limit": 64}
    assert rig.scripts.call("claim", now, **claim)[0] == "ok"
    assert rig.claim(token="w2") == ["held"]
    rig.call("takeover", name="admission:7", seen=rig.held("admission:7"), token="keeper")
    rig.call("release", name="admission:7", token="keeper", slots={})
    assert rig.claim(token="w2")[4] == "m1"
    assert rig.scripts.call("claim", now, **claim) == ["held"], "and it takes nothing from who has it"


def test_accept_refuses_what_would_be_too_much_whole_batch_or_nothing(rig: Rig) -> None:
    assert rig.accept("m1", "m2", of_account=3) == ["ok", 2]
    before = rig.state()
    assert rig.accept("m3", "m4", of_account=3) == ["full", "account", "a"]
    assert rig.accept("m3", "m4", most=3) == ["full", "global", ""]
    assert rig.state() == before
    assert rig.accept("m3", account="b", of_account=1, most=3) == ["ok", 1]


def test_at_the_memory_limit_accept_refuses_and_what_is_under_way_ends(rig: Rig) -> None:
    rig.ready("m1")
    rig.client.config_set("maxmemory", 1_000_000)
    before = rig.state()
    with pytest.raises(ResponseError, match=r"(?i)oom|maxmemory"):
        rig.accept("m2")
    assert rig.state() == before
    assert rig.start()[0] == "ok"
    assert rig.move(script_scenes.answered(rig, "m1"), holder="turn:m1", token="d1") == ["ok"]
    assert rig.call("take", stage="delivery", id="m1", token="s1")[0] == "ok"
    assert rig.call("send", **asking("m1")) == ["yes"]
    ends = {**rig.end("m1"), "result": result_of("m1")}
    assert rig.move(ends, holder="delivery:m1", token="s1") == ["ok"]
    rig.client.config_set("maxmemory", 0)
    assert rig.hget("m1", "disposition") == "answered"


HOSTILE = [
    'a"b', "a'b", "a\\b", "100%", "%1 %%", "a|b,c", "]==] .. os.exit() --", "\x00\x01", "línea\nnueva", "👩‍👩‍👧",
    "🌊" * 3000,
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_name_does_no_harm(text: str, rig: Rig) -> None:
    rig.accept("m1", lane=text, account=text)
    claimed = rig.claim()
    assert claimed[4] == "m1"
    assert rig.hget("m1", "lane") == text
    rig.move(rig.frozen("m1"))
    assert rig.client.hmget(f"{P}lane:{text}", "current", "state") == ["m1", "queued"]
    assert rig.start()[1] == "m1"
    assert rig.move({**rig.end("m1"), "fields": {"log": text}}, holder="turn:m1", token="d1") == ["ok"]
    assert rig.hget("m1", "log") == text
    assert rig.client.hget(f"{P}depth", text) == "0"
    assert wakes(rig, "dispatch") == ["default"]


def test_an_id_whose_move_fails_comes_back_alone(rig: Rig) -> None:
    rig.accept("m1", "m2", "m3")
    rig.claim()
    rig.client.set(f"{P}wrong", "a string")
    spoilt = rig.to("m2", "engagement", effects=[["HSET", f"{P}wrong", "a", 1]])
    verdicts = rig.move(rig.to("m1", "engagement"), spoilt, rig.to("m3", "engagement"), release=False)
    assert (verdicts[0], verdicts[2]) == ("ok", "ok")
    assert verdicts[1].startswith("failed:")
    assert "WRONGTYPE" in verdicts[1]
    assert [rig.hget(i, "place") for i in ("m1", "m2", "m3")] == ["engagement", "admission", "engagement"]
    assert rig.step("m2") == 1
    assert rig.client.zrange(f"{P}at:admission:7", 0, -1) == ["m2"]
    assert rig.client.zrange(f"{P}at:engagement:7", 0, -1) == ["m1", "m3"]
    alone = rig.call("claim", stage="admission", part="7", token="w1", limit=64)
    assert alone[4::2] == ["m2"]


def test_a_later_message_of_the_scope_is_not_applied_before_one_that_was_not(rig: Rig) -> None:
    rig.accept("m1", "m2")
    rig.claim()
    first = {**rig.to("m1", "engagement"), "guards": [["room", "l1", 0]], "scopes": ["l1"]}
    assert rig.move(first, {**rig.to("m2", "engagement"), "scopes": ["l1"]}, release=False) == ["guard:1", "stale"]


def test_only_the_holder_applies(rig: Rig) -> None:
    rig.accept("m1")
    rig.claim()
    before = rig.state()
    assert rig.move(rig.end("m1"), token="w2") == ["lost"]
    assert rig.move(rig.end("m1"), holder="admission:8") == ["lost"]
    assert rig.state() == before


def test_another_number_of_partitions_is_refused(tmp_path: Path) -> None:
    with server(tmp_path) as on:
        build(from_mapping({"redis": {"url": on.url}})).client.close()
        other = from_mapping({"redis": {"url": on.url}, "pipeline": {"partitions": 32}})
        with pytest.raises(Refused, match="partitions = 64"):
            build(other)


def test_ended_records_expire_and_living_ones_never_do(rig: Rig) -> None:
    rig.accept("m1", "m2")
    assert rig.client.ttl(f"{P}rec:m1") == -1
    rig.claim()
    rig.move(rig.end("m1"), rig.end("m2", "dead", "gave-up"))
    assert 0 < rig.client.pttl(f"{P}rec:m1") <= KEEP["keep_ms"]
    assert rig.client.ttl(f"{P}rec:m2") == -1, "a dead letter's record stays"
