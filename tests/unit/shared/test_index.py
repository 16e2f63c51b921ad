"""The outbound index on a real server: bounds, isolation, one entry or nothing (behaviour.md, section 3)."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from redis import exceptions as redis_errors
from structlog.testing import capture_logs

from shared.index import Found, IndexEntry, OutboundIndex
from shared.process import knows_flags
from shared.redis.client import Redis, connect
from shared.redis.embedded import Embedded
from shared.redis.keys import Keys
from shared.redis.scripts import Scripts
from shared.settings import IndexSettings

NOW_MS = 1_788_281_382_163
"""The time in the Weixin id 7500595754332471560 (Q-79)."""
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
KEYS = Keys("t:")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    with Embedded.start(tmp_path_factory.mktemp("redis"), durable=False) as running:
        yield running


@pytest.fixture
def client(server: Embedded) -> Iterator[Redis]:
    made = connect(server.url)
    made.flushdb()
    yield made
    made.close()


def index_of(client: Redis, account: str = "wx", **limits: Any) -> OutboundIndex:
    scripts = Scripts(client, KEYS.prefix, shebang=knows_flags(client))
    return OutboundIndex(scripts, account, IndexSettings(**limits))


def entry(
    *ids: str, text: str = "原文", scope: str = "anna", sent_ago_ms: int = 2000, ago_ms: int = 1000
) -> IndexEntry:
    """Sent and completed so long before NOW_MS."""
    return IndexEntry(scope, text, NOW_MS - sent_ago_ms, NOW_MS - ago_ms, ids)


def fill(index: OutboundIndex, *entries: IndexEntry, now_ms: int = NOW_MS) -> None:
    for number, one in enumerate(entries):
        index.add(one, now_ms, f"out-{number}")


def by_id(index: OutboundIndex, *ids: str, scope: str = "anna", now_ms: int = NOW_MS) -> Found:
    return index.find(scope, ids, None, now_ms)


def by_time(index: OutboundIndex, at_ms: int, *ids: str, scope: str = "anna") -> Found:
    return index.find(scope, ids, at_ms, NOW_MS)


def test_what_was_sent_is_found_by_any_of_its_ids(client: Redis) -> None:
    index = index_of(client)
    fill(index, entry("7500595754332471560", "k|1", text="明天十点"), entry("7500595754332471561", text="后天"))
    for id_ in ("7500595754332471560", "k|1"):
        assert by_id(index, id_) == Found("id", "明天十点")
    assert by_id(index, "7500595754332471562") == Found("none")
    assert by_id(index) == Found("none")


def test_the_first_known_id_decides(client: Redis) -> None:
    """DingTalk asks for originalProcessQueryKey, then msgId."""
    index = index_of(client)
    fill(index, entry("key", text="一"), entry("msg", text="二"))
    assert by_id(index, "unknown", "msg", "key") == Found("id", "二")


def test_q71_of_201_sends_the_oldest_is_gone_and_the_second_oldest_is_found(client: Redis) -> None:
    index = index_of(client)
    fill(index, *(entry(f"id-{n}", text=f"第{n}") for n in range(201)))
    assert index.size(NOW_MS) == 200
    assert by_id(index, "id-0") == Found("none")
    assert by_id(index, "id-1") == Found("id", "第1")
    assert by_id(index, "id-200") == Found("id", "第200")


def test_a_full_index_keeps_what_completed_last_whatever_the_order_of_writing(client: Redis) -> None:
    index = index_of(client, max_entries=2)
    fill(index, entry("new", ago_ms=0), entry("middle", ago_ms=10), entry("old", ago_ms=20))
    assert [by_id(index, id_).hit for id_ in ("new", "middle", "old")] == ["id", "id", "none"]


@pytest.mark.parametrize(
    ("age_ms", "hit"),
    [
        (29 * DAY_MS + 23 * HOUR_MS, "id"),
        (30 * DAY_MS, "id"),
        (30 * DAY_MS + 1, "none"),
        (30 * DAY_MS + 1000, "none"),
    ],
)
def test_q72_an_entry_is_kept_for_exactly_30_days(client: Redis, age_ms: int, hit: str) -> None:
    index = index_of(client)
    fill(index, entry("7", ago_ms=0, sent_ago_ms=0))
    assert by_id(index, "7", now_ms=NOW_MS + age_ms).hit == hit
    assert index.size(NOW_MS + age_ms) == (1 if hit == "id" else 0)


def test_reading_applies_the_bounds_too(client: Redis) -> None:
    """A smaller cap holds from the next read, and the texts go with their rows."""
    fill(index_of(client), *(entry(f"id-{n}", ago_ms=n) for n in range(5)))
    smaller = index_of(client, max_entries=2)
    assert by_id(smaller, "id-4") == Found("none")
    assert smaller.size(NOW_MS) == 2
    assert client.hlen(KEYS.index("wx", "texts")) == 3, "two texts and the serial"


def test_q73_8001_code_points_are_cut_to_8000(client: Redis) -> None:
    index = index_of(client)
    fill(index, entry("7", text="潮😀" * 4000 + "x"), entry("8", text="a\ud800b"))
    assert by_id(index, "7") == Found("id", "潮😀" * 4000)
    assert by_id(index, "8") == Found("id", "a?b"), "half a surrogate pair cannot be stored"


def test_q74_an_exact_id_wins_over_a_nearer_time(client: Redis) -> None:
    index = index_of(client)
    fill(index, entry("A", text="甲", ago_ms=HOUR_MS, sent_ago_ms=HOUR_MS), entry("B", text="乙"))
    assert by_time(index, NOW_MS - 1500, "A") == Found("id", "甲")
    assert by_time(index, NOW_MS - 1500, "C") == Found("time", "乙")


@pytest.mark.parametrize(
    ("at_ms", "hit"),
    [
        (NOW_MS - 1000 + 15_000, "time"),
        (NOW_MS - 1000 + 15_001, "none"),
        (NOW_MS - 2000 - 15_000, "time"),
        (NOW_MS - 2000 - 15_001, "none"),
    ],
)
def test_q75_the_quoted_time_may_lie_15_s_beside_the_sending(client: Redis, at_ms: int, hit: str) -> None:
    index = index_of(client)
    fill(index, entry("7"))
    assert by_time(index, at_ms, "other").hit == hit


def test_q76_two_entries_in_the_window_yield_nothing(client: Redis) -> None:
    index = index_of(client)
    fill(index, entry("7"), entry("8", ago_ms=500))
    assert by_time(index, NOW_MS - 1500, "other") == Found("none")


def test_q77_q78_another_users_or_conversations_entry_is_not_used(client: Redis) -> None:
    index = index_of(client)
    fill(index, entry("7", scope="bob", text="不给"), entry("8", scope="cid-2", text="不给"))
    assert by_time(index, NOW_MS - 1500, "7") == Found("none")
    fill(index_of(client, "other"), entry("9", text="不给"))
    assert by_id(index, "9") == Found("none"), "nor another account's"


def test_q95_two_entries_with_one_id_yield_nothing_not_even_by_time(client: Redis) -> None:
    index = index_of(client)
    fill(index, entry("7", text="一"), entry("7", text="二", ago_ms=HOUR_MS, sent_ago_ms=HOUR_MS))
    assert by_time(index, NOW_MS - 1500, "7") == Found("twice")
    assert by_time(index, NOW_MS - 1500, "7", "8") == Found("twice"), "nor by a further id"


def test_an_id_that_an_entry_names_twice_is_no_second_entry(client: Redis) -> None:
    index = index_of(client)
    fill(index, entry("7", "7"))
    assert by_id(index, "7").hit == "id"


def test_the_same_write_again_changes_nothing(client: Redis) -> None:
    """redis-py repeats a call whose answer was lost."""
    index = index_of(client)
    assert [index.add(entry("7"), NOW_MS, "out-1") for _ in range(3)] == [1, 1, 1]
    assert index.add(entry("8"), NOW_MS, "out-2") == 2


def test_q94_concurrent_writers_stay_below_the_cap_and_lose_none_of_the_newest(server: Embedded, client: Redis) -> None:
    writers, each, cap = 4, 60, 50
    seen: list[int] = []

    def write(writer: int) -> None:
        own = connect(server.url)
        index = index_of(own, max_entries=cap)
        for n in range(each):
            ago_ms = (each - n) * 10 + writer
            seen.append(index.add(entry(f"{writer}-{n}", ago_ms=ago_ms), NOW_MS, f"{writer}-{n}"))
        own.close()

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    index = index_of(client, max_entries=cap)
    newest = sorted(((each - n) * 10 + w, f"{w}-{n}") for w in range(writers) for n in range(each))
    assert len(seen) == writers * each
    assert max(seen) == index.size(NOW_MS) == cap
    assert [id_ for _, id_ in newest[:cap] if by_id(index, id_).hit != "id"] == []


def test_the_memory_of_a_full_index_is_bounded(client: Redis) -> None:
    """200 entries of 8,000 code points that take three bytes each: 4.8 MB of text and little else."""
    index = index_of(client)
    fill(index, *(entry(f"{7_500_595_754_332_471_560 + n}", text="潮" * 9000) for n in range(210)))
    keys = [KEYS.index("wx"), KEYS.index("wx", "texts")]
    used = sum(client.memory_usage(key, samples=0) for key in keys)
    print(f"MEMORY USAGE of a full index: {used:,} bytes")
    assert 200 * 8000 * 3 < used < 200 * 8000 * 3 * 1.4
    # All of it goes by itself once an account falls silent for good.
    assert all(0 < client.pttl(key) <= 60 * DAY_MS for key in keys)


def test_q91_a_write_that_fails_only_warns(client: Redis) -> None:
    index = index_of(client)
    client.set(KEYS.index("wx", "texts"), "no hash")
    with pytest.raises(redis_errors.ResponseError):
        index.add(entry("8"), NOW_MS, "out-2")
    with capture_logs() as logs:
        index.keep(entry("8"), NOW_MS, "out-2")
    assert [(line["event"], line["log_level"], line["account"]) for line in logs] == [
        ("index_write_failed", "warning", "wx")
    ]
