"""Numbered versions of the configuration, over a real server (design.md, section 7)."""

import json

import pytest
import redis
from core_world import NOW_MS, PREFIX, settings_of

from shared.configuration import HISTORY, Follower, Versions
from shared.redis.keys import Keys
from shared.settings import ConfigurationError, Settings

KEYS = Keys(PREFIX)


def versions(client: redis.Redis, own: Settings | None = None) -> Versions:
    return Versions(client, KEYS, own or settings_of())


def lane(lane_max: int) -> Settings:
    return settings_of({"pipeline": {"lane_max": lane_max}})


def test_the_first_start_makes_version_1_of_the_own_file(core_client: redis.Redis) -> None:
    current = versions(core_client, lane(7)).start(NOW_MS)
    assert (current.version, current.settings.pipeline.lane_max) == (1, 7)
    [row] = versions(core_client).history()
    assert (row["version"], row["who"], row["at"]) == (1, "start", NOW_MS)


def test_before_any_start_the_own_file_is_version_0(core_client: redis.Redis) -> None:
    current = versions(core_client, lane(7)).current()
    assert (current.version, current.settings.pipeline.lane_max) == (0, 7)


def test_the_same_text_again_makes_no_new_version(core_client: redis.Redis) -> None:
    one = versions(core_client)
    assert one.apply(lane(7), "anna", NOW_MS) == 1
    assert one.apply(lane(7), "bert", NOW_MS + 1) == 1
    assert one.apply(lane(8), "bert", NOW_MS + 2) == 2
    assert [(row["version"], row["who"]) for row in one.history()] == [(2, "bert"), (1, "anna")]


def test_every_process_follows_at_its_next_look(core_client: redis.Redis) -> None:
    here, there = (Follower(versions(core_client, lane(7)), NOW_MS) for _ in range(2))
    assert not there.refresh()
    versions(core_client).apply(lane(9), "anna", NOW_MS)
    assert there.refresh()
    assert (there.version, there.settings.pipeline.lane_max) == (2, 9)
    assert not there.refresh()
    assert (here.version, here.settings.pipeline.lane_max) == (1, 7)


def test_process_settings_stay_with_the_process(core_client: redis.Redis) -> None:
    own = settings_of({"ingest": {"port": 9001}, "metrics": {"port": 9002}})
    follower = Follower(versions(core_client, own), NOW_MS)
    versions(core_client).apply(settings_of({"ingest": {"port": 9003, "batch_max": 3}}), "anna", NOW_MS)
    assert follower.refresh()
    settings = follower.settings
    assert (settings.ingest.port, settings.metrics.port, settings.ingest.batch_max) == (9001, 9002, 3)


def test_a_rollback_is_a_new_version_with_the_old_text(core_client: redis.Redis) -> None:
    one = versions(core_client)
    for number in (7, 8, 9):
        one.apply(lane(number), "anna", NOW_MS)
    assert one.rollback(1, "anna", NOW_MS + 5) == 4
    assert one.current().settings.pipeline.lane_max == 7
    assert one.get(3).pipeline.lane_max == 9
    assert one.history()[0]["sha"] == one.history()[3]["sha"]


def test_a_rollback_to_what_is_in_force_changes_nothing(core_client: redis.Redis) -> None:
    one = versions(core_client)
    one.apply(lane(7), "anna", NOW_MS)
    assert one.rollback(1, "anna", NOW_MS) == 1
    assert len(one.history()) == 1


def test_a_rollback_to_a_version_that_is_not_kept_is_refused(core_client: redis.Redis) -> None:
    with pytest.raises(ConfigurationError, match="version 3 is not kept"):
        versions(core_client).rollback(3, "anna", NOW_MS)


def test_a_restart_with_an_unchanged_file_does_not_undo_an_apply(core_client: redis.Redis) -> None:
    versions(core_client, lane(7)).start(NOW_MS)
    versions(core_client).apply(lane(9), "anna", NOW_MS)
    again = versions(core_client, lane(7)).start(NOW_MS + 1)
    assert (again.version, again.settings.pipeline.lane_max) == (2, 9)


def test_a_restart_with_a_file_that_was_changed_applies_it(core_client: redis.Redis) -> None:
    versions(core_client, lane(7)).start(NOW_MS)
    versions(core_client).apply(lane(9), "anna", NOW_MS)
    again = versions(core_client, lane(11)).start(NOW_MS + 1)
    assert (again.version, again.settings.pipeline.lane_max) == (3, 11)


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(json.dumps({"pipeline": {"lane_max": 0}}), id="a value that is refused"),
        pytest.param(json.dumps({"no_such_key": 1}), id="an unknown key"),
        pytest.param("{", id="no JSON"),
        pytest.param("[]", id="no object"),
        pytest.param(None, id="missing"),
    ],
)
def test_an_invalid_stored_version_leaves_the_last_good_one(core_client: redis.Redis, stored: str | None) -> None:
    follower = Follower(versions(core_client, lane(7)), NOW_MS)
    versions(core_client).apply(lane(9), "anna", NOW_MS)
    if stored is None:
        core_client.delete(KEYS.config(2))
    else:
        core_client.set(KEYS.config(2), stored)
    assert not follower.refresh()
    assert (follower.version, follower.settings.pipeline.lane_max) == (1, 7)
    versions(core_client).apply(lane(10), "anna", NOW_MS)
    assert follower.refresh()
    assert follower.settings.pipeline.lane_max == 10


def test_without_the_server_the_last_good_one_stays(core_client: redis.Redis) -> None:
    follower = Follower(versions(core_client, lane(7)), NOW_MS)
    core_client.delete(KEYS.config_current)
    core_client.lpush(KEYS.config_current, "not a number's type")
    assert not follower.refresh()
    assert follower.settings.pipeline.lane_max == 7


def test_the_history_is_capped_and_so_are_the_kept_versions(core_client: redis.Redis) -> None:
    one = versions(core_client)
    for number in range(1, HISTORY + 4):
        one.apply(lane(number), "anna", NOW_MS + number)
    rows = one.history()
    assert [row["version"] for row in rows] == list(range(HISTORY + 3, 3, -1))
    assert one.get(4).pipeline.lane_max == 4
    for gone in (1, 2, 3):
        with pytest.raises(ConfigurationError):
            one.get(gone)
    assert core_client.llen(KEYS.config_history) == HISTORY
    assert one.apply(lane(1), "anna", NOW_MS) == HISTORY + 4
