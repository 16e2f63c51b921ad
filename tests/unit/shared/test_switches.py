"""The operator's switches as a process obeys them, over a real server (behaviour.md, section 5)."""

import json
from typing import Any

import pytest
import redis
from core_world import NOW_MS, PREFIX, settings_of

from shared.redis.keys import Keys
from shared.switches import AUDIT_MAX, State, SwitchBoard

KEYS = Keys(PREFIX)
OFF = State(read_only=False, safe_mode=False, paused=False)


def board(client: redis.Redis) -> SwitchBoard:
    return SwitchBoard(client, KEYS)


def audit(client: redis.Redis) -> list[dict[str, object]]:
    rows: Any = client.xrange(KEYS.audit)
    return [json.loads(fields["row"]) for _, fields in rows]


def test_r4_everything_is_off_at_first(core_client: redis.Redis) -> None:
    one = board(core_client)
    one.first_values(settings_of(), NOW_MS)
    assert one.read() == OFF
    assert audit(core_client) == []


def test_r3_starting_in_read_only_is_audited(core_client: redis.Redis) -> None:
    one = board(core_client)
    one.first_values(settings_of({"read_only": True}), NOW_MS)
    assert one.read().read_only
    assert audit(core_client) == [{"type": "config", "reason": "read-only-mode", "at": NOW_MS}]


def test_first_values_are_written_only_once(core_client: redis.Redis) -> None:
    board(core_client).first_values(settings_of({"read_only": True, "paused": True}), NOW_MS)
    board(core_client).write("paused", False, "anna", NOW_MS)
    again = board(core_client)
    again.first_values(settings_of({"safe_mode": True, "paused": True}), NOW_MS)
    assert again.read() == State(read_only=True, safe_mode=False, paused=False)


@pytest.mark.parametrize("name", ["read_only", "safe_mode", "paused"])
def test_r20_turning_on_works_at_once_in_every_process(core_client: redis.Redis, name: str) -> None:
    here, there = board(core_client), board(core_client)
    assert there.read() == OFF
    here.write(name, True, "anna", NOW_MS)
    assert getattr(there.read(), name)


@pytest.mark.parametrize("name", ["read_only", "safe_mode"])
def test_r30_turning_off_waits_for_a_restart(core_client: redis.Redis, name: str) -> None:
    here, there = board(core_client), board(core_client)
    here.write(name, True, "anna", NOW_MS)
    there.read()
    here.write(name, False, "anna", NOW_MS)
    assert getattr(there.read(), name)
    restarted = board(core_client)
    assert restarted.read() == OFF


@pytest.mark.parametrize("name", ["read_only", "safe_mode"])
def test_turning_off_with_apply_works_at_once(core_client: redis.Redis, name: str) -> None:
    here, there = board(core_client), board(core_client)
    for _ in range(2):
        here.write(name, True, "anna", NOW_MS)
        assert getattr(there.read(), name)
        here.write(name, False, "anna", NOW_MS, apply=True)
        assert there.read() == OFF


def test_an_apply_for_one_switch_keeps_the_other_that_is_on(core_client: redis.Redis) -> None:
    one = board(core_client)
    one.write("read_only", True, "anna", NOW_MS)
    one.write("safe_mode", True, "anna", NOW_MS)
    one.read()
    one.write("safe_mode", False, "anna", NOW_MS, apply=True)
    assert one.read() == State(read_only=True, safe_mode=False, paused=False)


def test_r24_a_pause_is_over_as_soon_as_it_is_lifted_and_read_only_stays(core_client: redis.Redis) -> None:
    one = board(core_client)
    one.write("read_only", True, "anna", NOW_MS)
    one.write("paused", True, "anna", NOW_MS)
    one.read()
    one.write("paused", False, "anna", NOW_MS)
    assert one.read() == State(read_only=True, safe_mode=False, paused=False)


def test_r23_read_only_survives_a_restart(core_client: redis.Redis) -> None:
    board(core_client).write("read_only", True, "anna", NOW_MS)
    again = board(core_client)
    again.first_values(settings_of({"read_only": False}), NOW_MS)
    assert again.read().read_only


def test_every_change_is_audited_with_who_and_what(core_client: redis.Redis) -> None:
    board(core_client).write("read_only", True, "anna", NOW_MS)
    board(core_client).write("read_only", False, "bert", NOW_MS + 1, apply=True)
    assert audit(core_client) == [
        {"type": "switch", "reason": "read_only=on", "at": NOW_MS, "who": "anna"},
        {"type": "switch", "reason": "read_only=off", "at": NOW_MS + 1, "who": "bert"},
    ]


def test_a_name_that_is_no_switch_is_refused_and_writes_nothing(core_client: redis.Redis) -> None:
    with pytest.raises(ValueError, match="no switch applied"):
        board(core_client).write("applied", True, "anna", NOW_MS)
    assert core_client.keys("*") == []


def test_the_audit_is_capped(core_client: redis.Redis) -> None:
    one = board(core_client)
    with core_client.pipeline() as pipe:
        for number in range(AUDIT_MAX + 500):
            pipe.xadd(KEYS.audit, {"row": str(number)})
        pipe.execute()
    one.audit("skip", "read-only-mode", NOW_MS)
    assert core_client.xlen(KEYS.audit) <= AUDIT_MAX + 200


def test_r5_r6_only_the_channel_named_mock_is_exempt(core_client: redis.Redis) -> None:
    one = board(core_client)
    one.write("safe_mode", True, "anna", NOW_MS)
    assert one.read().sending.refuses("telegram") == "safe-mode"
    one.write("read_only", True, "anna", NOW_MS)
    sending = one.read().sending
    assert sending.refuses("telegram") == "read-only-mode"
    assert sending.refuses("mock") is None
