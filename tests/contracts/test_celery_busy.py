"""A busy worker holds no further wake-up: it stays in the list, for another worker and for the reconciler to see."""

from pathlib import Path

import pytest
import redis

from tests.contracts.celery_support import Worker, eventually, key, message, server, worker


def _busy(ours: Worker, concurrency: int) -> None:
    for number in range(concurrency):
        ours.log.lpush(key(), message(f"hold-{number}"))
    eventually(lambda: len(ours.seen("ran")) == concurrency)


@pytest.mark.parametrize(("pool", "concurrency"), [("solo", 1), ("threads", 2)])
def test_a_busy_worker_takes_no_second_wake_up(pool: str, concurrency: int, tmp_path: Path) -> None:
    with server(tmp_path) as broker, worker(broker.url, broker.url, pool, concurrency, tmp_path) as ours:
        _busy(ours, concurrency)
        rest = [message(f"rest-{number}") for number in range(5)]
        ours.log.lpush(key(), *rest)
        with worker(broker.url, broker.url, "solo", 1, tmp_path, kind="second") as second:
            # The second worker gets every one of them, so the first holds none.
            eventually(lambda: len(second.seen("ended")) == 5)
            assert second.seen("ended") == [f"rest-{number}" for number in range(5)]
            assert len(ours.seen("ran")) == concurrency + 5
            assert ours.log.llen(key()) == 0


@pytest.mark.parametrize(("pool", "concurrency"), [("solo", 1), ("threads", 2)])
def test_the_list_of_a_busy_worker_keeps_its_length_and_each_end_takes_one(
    pool: str, concurrency: int, tmp_path: Path
) -> None:
    with server(tmp_path) as broker, worker(broker.url, broker.url, pool, concurrency, tmp_path) as ours:
        _busy(ours, concurrency)
        ours.log.lpush(key(), *[message(f"hold-more-{number}") for number in range(3)])
        for started in range(concurrency + 1, concurrency + 4):
            assert ours.log.llen(key()) == concurrency + 3 - (started - 1)
            ours.log.rpush("seen:release", "go")
            eventually(lambda: len(ours.seen("ran")) == started)  # noqa: B023
        assert ours.log.llen(key()) == 0


def test_a_busy_worker_that_lost_its_connection_and_has_a_new_one_holds_nothing_either(tmp_path: Path) -> None:
    with (
        server(tmp_path / "broker") as broker,
        server(tmp_path / "log") as log,
        worker(broker.url, log.url, "threads", 2, tmp_path) as ours,
        redis.Redis.from_url(broker.url) as client,
    ):
        client.lpush(key(), message("hold-before"))
        eventually(lambda: len(ours.seen("ran")) == 1)
        client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        client.lpush(key(), message("hold-after"))
        eventually(lambda: len(ours.seen("ran")) == 2)
        client.lpush(key(), *[message(f"rest-{number}") for number in range(5)])
        with worker(broker.url, log.url, "solo", 1, tmp_path, kind="second") as second:
            eventually(lambda: len(second.seen("ended")) == 5)
            assert second.seen("ended") == [f"rest-{number}" for number in range(5)]


@pytest.mark.parametrize("reconnected", [False, True])
def test_a_thread_that_becomes_free_takes_the_next_wake_up_at_once(reconnected: bool, tmp_path: Path) -> None:
    # Stock Celery waits for its next timer, up to a second, whenever all threads were busy: here about 20 times.
    with (
        server(tmp_path / "broker") as broker,
        server(tmp_path / "log") as log,
        worker(broker.url, log.url, "threads", 2, tmp_path) as ours,
        redis.Redis.from_url(broker.url) as client,
    ):
        if reconnected:
            client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            client.lpush(key(), message("first"))
            eventually(lambda: ours.seen("ended") == ["first"])
        ours.log.delete("seen:ended")
        client.lpush(key(), *[message(f"slow-{number}") for number in range(40)])
        eventually(lambda: len(ours.seen("ended")) == 40, within_s=10)
