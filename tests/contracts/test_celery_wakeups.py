"""A wake-up is what Celery itself would have sent, and a stock worker takes it."""

import json
import os
import socket
from pathlib import Path

import pytest
import redis
from celery import Celery

from shared.redis.wakeups import fill, is_name, pushed_at_ms, template
from tests.contracts.celery_support import PREFIX, STAGE, eventually, key, message, server, worker


def test_a_stock_celery_worker_runs_a_wake_up_with_the_right_argument(tmp_path: Path) -> None:
    with server(tmp_path) as broker, worker(broker.url, broker.url, "solo", 1, tmp_path, kind="stock") as stock:
        stock.log.lpush(key(), message("01JWAKEUP"))
        eventually(lambda: stock.seen("ended") == ["01JWAKEUP"])
        assert stock.log.llen(key()) == 0


@pytest.mark.parametrize("pool", ["solo", "threads"])
def test_our_worker_runs_a_wake_up_that_a_script_filled_in_and_one_that_celery_sent(tmp_path: Path, pool: str) -> None:
    script = """
    local text = redis.call('GET', KEYS[2])
    text = text:gsub('@@ID@@', ARGV[2]):gsub('@@AT@@', ARGV[3]):gsub('@@NAME@@', ARGV[1])
    return redis.call('LPUSH', KEYS[1], text)
    """
    with server(tmp_path) as broker, worker(broker.url, broker.url, pool, 2, tmp_path) as ours:
        ours.log.set("template", template(STAGE, f"wake.{STAGE}", f"{STAGE}.run"))
        ours.log.eval(script, 2, key(), "template", "01JSCRIPT", "push-01JSCRIPT", "1700000000000")
        eventually(lambda: ours.seen("ended") == ["01JSCRIPT"])
        stock = Celery("stock", broker=broker.url, set_as_current=False)
        stock.conf.update(broker_transport_options={"global_keyprefix": PREFIX}, task_default_exchange="")
        stock.send_task(f"{STAGE}.run", args=["01JSENT"], queue=f"wake.{STAGE}", ignore_result=True)
        stock.close()
        eventually(lambda: ours.seen("ended") == ["01JSCRIPT", "01JSENT"])
        assert ours.poison() == []


def test_a_worker_leaves_no_key_of_its_own_behind(tmp_path: Path) -> None:
    with server(tmp_path) as broker, worker(broker.url, broker.url, "threads", 2, tmp_path) as ours:
        ours.log.lpush(key(), message("a"), message("b"))
        eventually(lambda: sorted(ours.seen("ended")) == ["a", "b"])
        assert [name for name in ours.log.scan_iter() if not name.startswith(b"seen:")] == []


def test_the_pure_twin_gives_what_the_script_gives(tmp_path: Path) -> None:
    text = template(STAGE, f"wake.{STAGE}", f"{STAGE}.run")
    script = "local t = ARGV[4]:gsub('@@ID@@', ARGV[2]):gsub('@@AT@@', ARGV[3]):gsub('@@NAME@@', ARGV[1]) return t"
    with server(tmp_path) as broker, redis.Redis.from_url(broker.url) as client:
        for name in ("63", "ops-bot", "助手", "a@@ID@@b", "x" * 512):
            assert (
                client.eval(script, 0, name, "p1", "1700000000123", text)
                == fill(text, name, "p1", 1700000000123).encode()
            )


def test_the_argument_stands_as_plain_text_in_the_body() -> None:
    body = json.loads(message("01J"))["body"]
    assert json.loads(body) == [["01J"], {}, {"callbacks": None, "errbacks": None, "chain": None, "chord": None}]


def test_id_correlation_root_and_delivery_id_are_the_push() -> None:
    made = json.loads(fill(template("quotes", "wake.quotes", "quotes.run"), "n", "p7", 5))
    assert made["headers"]["id"] == made["headers"]["root_id"] == "p7"
    assert made["properties"]["correlation_id"] == made["properties"]["delivery_tag"] == "p7"
    assert made["headers"]["task"] == "quotes.run"
    assert made["properties"]["delivery_info"] == {"exchange": "", "routing_key": "wake.quotes"}


def test_the_text_names_no_host_and_no_process() -> None:
    text = template(STAGE, f"wake.{STAGE}", f"{STAGE}.run")
    assert socket.gethostname() not in text
    assert f"{os.getpid()}@" not in text
    template.cache_clear()
    assert template(STAGE, f"wake.{STAGE}", f"{STAGE}.run") == text


def test_the_time_of_the_push_is_read_back() -> None:
    assert pushed_at_ms(message("01J", at_ms=1_700_000_000_123)) == 1_700_000_000_123


@pytest.mark.parametrize(
    "raw", [b"", b"\xff", b"[]", b"7", b"{}", b'{"headers": null}', b'{"headers": {"pushed_at": "1"}}']
)
def test_what_does_not_say_when_it_was_pushed_has_no_time(raw: bytes) -> None:
    assert pushed_at_ms(raw) is None


@pytest.mark.parametrize("name", ["", 'a"b', "a\\b", "a%b", "a\nb", "x" * 513])
def test_what_would_need_an_escape_is_no_name(name: str) -> None:
    assert not is_name(name)
    with pytest.raises(ValueError, match="name"):
        fill("@@NAME@@", name, "p", 0)
