"""How scripts are called: by hash, repeated without harm, and at the memory limit only what lets work end."""

from pathlib import Path

import pytest
import redis
from core_world import NOW_MS, PREFIX, Core, message
from redis.exceptions import OutOfMemoryError, ResponseError

import shared.redis
from shared.outcome import STAGES
from shared.redis.client import server_time_ms
from shared.redis.keys import Keys
from shared.redis.scripts import AT_THE_LIMIT, LATE_MS, Scripts, pairs

NAMES = sorted(p.stem for p in (Path(shared.redis.__file__).parent / "lua").glob("*.lua") if p.stem != "core")
KEYS = Keys(PREFIX)


@pytest.mark.parametrize("name", NAMES)
def test_every_script_compiles_and_its_flags_say_what_it_may_do(core_client: redis.Redis, name: str) -> None:
    text, sha = Scripts(core_client, PREFIX).source(name)
    assert core_client.script_load(text) == sha
    assert text.startswith("#!lua flags=allow-oom\n" if name in AT_THE_LIMIT else "#!lua\n")


def test_what_lets_work_end_runs_at_the_limit_and_accept_does_not() -> None:
    wanted = {"move", "claim", "take", "start", "send", "renew", "ledger", "release", "takeover", "admit", "repush"}
    assert wanted <= AT_THE_LIMIT
    assert "accept" not in AT_THE_LIMIT
    assert set(NAMES) >= AT_THE_LIMIT


@pytest.mark.parametrize("name", NAMES)
def test_a_server_without_script_flags_gets_none(core_client: redis.Redis, name: str) -> None:
    text, _ = Scripts(core_client, PREFIX, shebang=False).source(name)
    assert "#!" not in text.splitlines()[0]


def test_a_server_that_forgot_its_scripts_is_told_again(core_client: redis.Redis) -> None:
    scripts = Scripts(core_client, PREFIX, late_ms=0)
    assert scripts.call("hold", NOW_MS, name="keeper", token="a") == 1
    core_client.script_flush()
    assert scripts.call("hold", NOW_MS, name="keeper", token="b") == 0


def test_a_lease_start_or_send_that_comes_too_late_is_nobodys(core_client: redis.Redis) -> None:
    """A call whose caller has long given up must not hold anything in its name."""
    scripts = Scripts(core_client, PREFIX)
    now = server_time_ms(core_client)
    assert scripts.call("hold", now - LATE_MS - 1, name="keeper", token="a") == 0
    assert scripts.call("start", now - LATE_MS - 1, harness="default", turn={"token": "a"}) == ["none"]
    send = {"holder": "delivery:1", "token": "a", "out": "1", "part": 0, "switches": []}
    assert scripts.call("send", now - LATE_MS - 1, **send) == ["lost"]
    assert core_client.keys("*") == []
    assert scripts.call("hold", now, name="keeper", token="b") == 1


def test_an_error_of_a_script_is_raised(core_client: redis.Redis) -> None:
    with pytest.raises(ResponseError):
        Scripts(core_client, PREFIX, late_ms=0).call("hold", NOW_MS)


def test_prefixes_do_not_meet(core_client: redis.Redis) -> None:
    assert Scripts(core_client, "a:", late_ms=0).call("hold", NOW_MS, name="keeper", token="1") == 1
    assert Scripts(core_client, "b:", late_ms=0).call("hold", NOW_MS, name="keeper", token="2") == 1
    assert core_client.hgetall("a:held") == {"keeper": "1|0|"}


def test_a_repeated_call_is_answered_as_before_and_does_nothing_twice(core: Core) -> None:
    [one] = core.publish(message())
    part = core.record(one)["part"]
    core.ctx.scripts.call("claim", NOW_MS, stage="admission", part=part, token="w", limit=64)
    move = {"id": one, "step": 1, "to": "engagement", "effects": [["INCR", "t:counted"]]}
    arguments = {
        "holder": f"admission:{part}", "token": "w", "release": False, "moves": [move], "order_wait_ms": 10_000,
        "slots": {}, "keep_ms": 1, "short_ms": 1, "frozen_ms": 1, "nonce": "one-call",
    }  # fmt: skip
    for _ in range(2):
        assert core.ctx.scripts.call("move", NOW_MS, **arguments) == [["ok"], []]
    assert core.ctx.scripts.call("move", NOW_MS, **{**arguments, "nonce": "another"}) == [["stale"], []]
    assert core.ctx.client.get("t:counted") == "1"
    assert core.record(one)["step"] == "2"
    assert core.ctx.client.llen(KEYS.wake("engagement")) == 1


def test_long_ids_and_empty_lists_pass_a_script_unchanged(core: Core) -> None:
    one = message(text='{"ids":[7500595754332471560],"none":[]}')
    [id_] = core.publish(one)
    assert core.seen(id_).get("env").count('[7500595754332471560],\\"none\\":[]') == 1


def test_at_the_memory_limit_work_ends_and_nothing_new_comes_in(core: Core) -> None:
    [one] = core.publish(message())
    part = core.record(one)["part"]
    client, scripts = core.ctx.client, core.ctx.scripts
    client.config_set("maxmemory", "1")
    try:
        with pytest.raises(OutOfMemoryError):
            client.set("t:more", "x")
        item = {
            "id": "x",
            "env": "",
            "part": "1",
            "lane": "l",
            "account": "demo",
            "channel": "mock",
            "fkey": "f",
            "at": 1,
        }
        with pytest.raises(OutOfMemoryError):
            scripts.call("accept", NOW_MS, items=[item], max_depth=0, max_account_depth=0)
        assert scripts.call("claim", NOW_MS, stage="admission", part=part, token="w", limit=64)[0] == "ok"
        assert scripts.call("renew", NOW_MS, held=[[f"admission:{part}", "w", one]], **{"assert": False}) == ["ok"]
        assert scripts.call("admit", NOW_MS, rates=[], busy="t:busy", member="m", most=1, busy_ms=60_000) == 0
    finally:
        client.config_set("maxmemory", "0")
    assert not client.exists(KEYS.record("x"))


def test_a_hash_comes_back_as_pairs() -> None:
    assert pairs(["a", "1", "b", ""]) == {"a": "1", "b": ""}
    with pytest.raises(ValueError):
        pairs(["a"])


def test_there_is_a_wake_up_for_every_stage(core_client: redis.Redis) -> None:
    head, _ = Scripts(core_client, PREFIX).source("hold")
    for stage in STAGES:
        assert f"{stage} = [==[" in head
