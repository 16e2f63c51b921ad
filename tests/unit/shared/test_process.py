"""What every process sets up at its start, over a real server."""

import threading

import pytest
import redis
from core_world import StepClock, settings_of

from shared.configuration import Versions
from shared.errors import Refused
from shared.process import FOLLOW_S, Process, build, follow, knows_flags
from shared.settings import Settings


def built(client: redis.Redis, settings: Settings | None = None) -> Process:
    return build(settings or settings_of(), clock=StepClock(), client=client)


def test_the_number_of_partitions_is_fixed_at_the_first_start(core_client: redis.Redis) -> None:
    assert built(core_client).partitions == 64
    with pytest.raises(Refused, match=r"pipeline\.partitions is 8, but 64 was fixed.*set partitions = 64"):
        built(core_client, settings_of({"pipeline": {"partitions": 8}}))


def test_all_processes_hash_quoted_ids_with_one_key(core_client: redis.Redis) -> None:
    first, second = built(core_client), built(core_client)
    assert first.log_key == second.log_key
    assert len(first.log_key) == 32
    core_client.flushall()
    assert built(core_client).log_key != first.log_key


def test_a_start_applies_the_configuration_and_its_switches(core_client: redis.Redis) -> None:
    process = built(core_client, settings_of({"read_only": True}))
    assert process.config.version == 1
    assert process.switches.read().read_only


def test_a_real_server_knows_script_flags(core_client: redis.Redis) -> None:
    assert knows_flags(core_client)


def test_the_configuration_is_followed_within_a_second(core_client: redis.Redis) -> None:
    process, stop = built(core_client), threading.Event()
    assert FOLLOW_S < 1
    thread = threading.Thread(target=follow, args=(process, stop))
    thread.start()
    try:
        Versions(core_client, process.keys, settings_of()).apply(settings_of({"pipeline": {"lane_max": 3}}), "anna", 1)
        waited = threading.Event()
        for _ in range(200):
            if process.config.version == 2:
                break
            waited.wait(0.05)
        assert process.config.settings.pipeline.lane_max == 3
    finally:
        stop.set()
        thread.join()
