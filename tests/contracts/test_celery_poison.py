"""No message ends, stalls or fools a worker: what is no wake-up is kept as poison, once, with its bytes."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.celery_support import STAGE, eventually, key, message, server, worker
from workers.guard import defect

QUEUE = f"wake.{STAGE}"
EMBED: dict[str, Any] = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}


def _changed(change: Callable[[dict[str, Any]], object]) -> bytes:
    parsed = json.loads(message("poisoned"))
    change(parsed)
    return json.dumps(parsed).encode()


def _without(*path: str) -> bytes:
    def drop(parsed: dict[str, Any]) -> None:
        for step in path[:-1]:
            parsed = parsed[step]
        del parsed[path[-1]]

    return _changed(drop)


def _with(value: Any, *path: str) -> bytes:
    def put(parsed: dict[str, Any]) -> None:
        for step in path[:-1]:
            parsed = parsed[step]
        parsed[path[-1]] = value

    return _changed(put)


def _body(content: Any) -> bytes:
    return _with(json.dumps(content), "body")


def _base64(text: str) -> bytes:
    def put(parsed: dict[str, Any]) -> None:
        parsed["body"] = text
        parsed["properties"]["body_encoding"] = "base64"

    return _changed(put)


CASES: dict[str, tuple[bytes, str]] = {
    # A stock worker exits and the message is lost.
    "not JSON": (b"so not JSON", "not JSON"),
    "empty": (b"", "not JSON"),
    "bad UTF-8": (b'{"body": "\xff"}', "not UTF-8"),
    "list": (b"[1, 2]", "not an object"),
    "number": (b"17", "not an object"),
    "null": (b"null", "not an object"),
    "bad body_encoding": (_with("rot13", "properties", "body_encoding"), "property body_encoding"),
    "body not base64": (_base64("***"), "body is not JSON"),
    # A stock worker exits, the message returns and ends the next one.
    "no body": (_without("body"), "no body"),
    "body is an object": (_body({"args": ["n"]}), "body is not a triple"),
    "body has two parts": (_body([["n"], {}]), "body is not a triple"),
    "task name unhashable": (_with(["x"], "headers", "task"), "unknown task"),
    "bad timelimit": (_with("soon", "headers", "timelimit"), "header timelimit"),
    # A stock worker reconnects for ever.
    "header id missing": (_without("headers", "id"), "header id"),
    # A stock worker reconnects and the message is lost.
    "empty object": (b"{}", "content type"),
    "no properties": (_without("properties"), "no properties"),
    "no delivery_tag": (_without("properties", "delivery_tag"), "property delivery_tag"),
    "no delivery_info": (_without("properties", "delivery_info"), "property delivery_info"),
    # A stock worker drops the message.
    "no headers": (_without("headers"), "no headers"),
    "headers null": (_with(None, "headers"), "no headers"),
    "no task header": (_without("headers", "task"), "unknown task"),
    "base64 of what is no JSON": (_base64(base64.b64encode(b"<xml/>").decode()), "body is not JSON"),
    "unknown compression": (_with("zoo", "headers", "compression"), "header compression"),
    "pickle": (_with("application/x-python-serialize", "content-type"), "content type"),
    "unknown content type": (_with("application/x-unknown", "content-type"), "content type"),
    "bad eta": (_with("tomorrow", "headers", "eta"), "header eta"),
    "bad expires": (_with("never", "headers", "expires"), "header expires"),
    "unknown task": (_with("nobody.run", "headers", "task"), "unknown task"),
    "kwargs not an object": (_body([["n"], [1], EMBED]), "keyword arguments"),
    "two arguments": (_body([["n", "m"], {}, EMBED]), "argument is not one name"),
    "unknown keyword": (_body([["n"], {"x": 1}, EMBED]), "keyword arguments"),
    # A stock worker runs these, which is worse.
    "argument is a number": (_body([[7], {}, EMBED]), "argument is not one name"),
    "no argument": (_body([[], {}, EMBED]), "argument is not one name"),
    "empty name": (_body([[""], {}, EMBED]), "argument is not one name"),
    "a callback": (_body([["n"], {}, {**EMBED, "callbacks": [{"task": "x"}]}]), "callbacks"),
    "embed null": (_body([["n"], {}, None]), "callbacks"),
    "another queue's task": (message("n", stage="quotes"), "unknown task"),
    "retries is text": (_with("3", "headers", "retries"), "header retries"),
    "an eta in the future": (_with("2999-01-01T00:00:00+00:00", "headers", "eta"), "header eta"),
    "too deep": (b"[" * 200_000, "not JSON"),
    "header id not text": (_with({}, "headers", "id"), "header id"),
    "another route": (_with("wake.quotes", "properties", "delivery_info", "routing_key"), "property delivery_info"),
    "unknown content encoding": (_with("ebcdic", "content-encoding"), "content type"),
    "no correlation id": (_with(None, "properties", "correlation_id"), "property correlation_id"),
    "body encoding unhashable": (_with([], "properties", "body_encoding"), "property body_encoding"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_no_wake_up_is_told_why(name: str) -> None:
    raw, reason = CASES[name]
    assert defect(raw, QUEUE) == reason


def test_a_wake_up_is_one_also_in_base64_or_after_kombu_put_it_back_or_from_a_newer_celery() -> None:
    assert defect(message("n"), QUEUE) is None
    parsed = json.loads(message("n"))
    assert defect(_base64(base64.b64encode(parsed["body"].encode()).decode()), QUEUE) is None
    assert defect(_with(True, "redelivered"), QUEUE) is None
    assert defect(_with(True, "properties", "delivery_info", "redelivered"), QUEUE) is None
    assert defect(_with("new", "headers", "a_header_of_tomorrow"), QUEUE) is None
    assert defect(_without("headers", "stamps"), QUEUE) is None


@pytest.mark.parametrize("pool", ["solo", "threads"])
def test_every_poison_is_kept_once_and_the_worker_goes_on(pool: str, tmp_path: Path) -> None:
    with server(tmp_path) as broker, worker(broker.url, broker.url, pool, 2, tmp_path) as ours:
        for number, (raw, _) in enumerate(CASES.values()):
            ours.log.lpush(key(), raw)
            ours.log.lpush(key(), message(f"good-{number}"))
        expected = [f"good-{number}" for number in range(len(CASES))]
        eventually(lambda: len(ours.seen("ended")) >= len(expected))
        assert sorted(ours.seen("ended")) == sorted(expected)
        kept = [(base64.b64decode(entry["raw"]), entry["queue"], entry["reason"]) for entry in ours.poison()]
        assert kept == [(raw, QUEUE, reason) for raw, reason in CASES.values()]
        assert ours.alive()
        assert ours.log.llen(key()) == 0


@pytest.mark.parametrize("pool", ["solo", "threads"])
def test_a_poison_store_that_fails_does_not_end_the_worker(pool: str, tmp_path: Path) -> None:
    with server(tmp_path) as broker, worker(broker.url, broker.url, pool, 2, tmp_path) as ours:
        ours.log.set("seen:poison", "of another type, so that the push to it fails")
        ours.log.lpush(key(), b"secret words", message("good"))
        eventually(lambda: ours.seen("ended") == ["good"])
        assert ours.alive()
        assert "secret words" not in ours.errors.read_text()
        assert "poison_lost" in ours.errors.read_text()
