"""Records that another Millstream wrote: older ones are read, newer ones wait, unreadable ones are kept as bytes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from shared.channels.port import Part
from shared.envelope import VERSION, Envelope
from shared.harness.port import Answer
from shared.redis.client import connect
from shared.redis.embedded import Embedded
from tests.unit.core_world import Core, Told, core_of, message, settings_of
from workers.apply import NEWER_RETRY_S
from workers.deadletters import store
from workers.deadletters.model import Letter

WAIT_S = 60
WRITTEN: dict[int, list[str]] = {
    1: [
        # The least that version 1 ever wrote.
        (
            '{"id":"01KA0000000000000000000001","message":{"channel":"mock","account":"demo","message_id":"1","keys":["anna:1"],'
            '"chat_id":"anna","chat_type":"private","sender_id":"anna","text":"hello"},"received_at_ms":1788280000000}'
        ),
        # Every key that it knew.
        (
            '{"version":1,"id":"01KA0000000000000000000001","message":{"channel":"mock","account":"demo","message_id":"1",'
            '"keys":["anna:1"],"chat_id":"anna","chat_type":"private","thread_id":null,"sender_id":"anna","sender_name":"Anna",'
            '"sender_is_bot":false,"system":false,"text":"hello","text_raw":"hello","mentions":[],"mentions_bot":null,'
            '"mentions_all":false,"self_known":true,"addressed":false,"attachments":[],"reply_to":{"message_id":"0",'
            '"author_id":"bob","author_name":"Bob","content":"before","selected":null,"attachments":[{"kind":"file",'
            '"name":"a"}],"unavailable_reason":null,"truncated":false,"lookup":null,"explicit_text":true,"source":"payload",'
            '"reference_kind":null,"source_chat_id":null},"sent_at_ms":1788280000000,"action":"process","ignore_reason":null,'
            '"ocr":null,"route":{}},"received_at_ms":1788280000000,"traceparent":""}'
        ),
    ],
}
"""What each version stored, as bytes that never change. Whoever raises VERSION adds what the new one writes."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    folder: Path = tmp_path_factory.mktemp("redis")
    with Embedded.start(folder, durable=False) as running:
        yield running


@pytest.fixture
def client(server: Embedded) -> Iterator[redis.Redis]:
    made = connect(server.url)
    made.flushall()
    yield made
    made.close()


@pytest.fixture
def core(client: redis.Redis) -> Core:
    settings = settings_of({"pipeline": {"newer_version_s": WAIT_S}}, self_id="bot")
    return core_of(client, settings, Told(*[Answer((Part("text", "yes"),))] * 5))


QUOTE = {"message_id": "0", "lookup": {"via": "platform", "chat_id": "anna", "message_id": "0"}}


def stored(core: Core, env: str | bytes, place: str = "") -> str:
    """A message that stands in its first stage, or in `place`, with `env` as its envelope."""
    [id_] = core.publish(message(reply_to=QUOTE if place == "quotes" else None))
    if place and place != core.record(id_)["place"]:
        core.wake("admission")
        if place == "quotes":
            core.wake("engagement")
        assert core.record(id_)["place"] == place
    core.ctx.client.hset(core.ctx.keys.record(id_), "env", env)
    return id_


def newer(env: str) -> str:
    value = json.loads(env)
    value["message"]["mood"] = {"of": "tomorrow"}
    return json.dumps({**value, "version": VERSION + 1, "shape": [1]})


def passes(core: Core, seconds: float) -> None:
    """Time goes by, and the keeper fires what is due."""
    core.clock.step(seconds)
    core.ctx.scripts.call("fire", core.ctx.now_ms(), limit=99, slots={"default": 4}, order_wait_ms=0)
    core.wake()


def letter(core: Core, id_: str) -> Letter:
    found = store.get(core.ctx, id_)
    assert found is not None
    return found


def test_every_version_has_its_samples() -> None:
    assert set(WRITTEN) == set(range(1, VERSION + 1))


@pytest.mark.parametrize(("version", "number"), [(v, n) for v, samples in WRITTEN.items() for n in range(len(samples))])
def test_what_an_older_version_wrote_is_read_and_answered(core: Core, version: int, number: int) -> None:
    raw = WRITTEN[version][number]
    envelope = Envelope.from_json(raw)
    assert (envelope.message.text, envelope.message.sender_id) == ("hello", "anna")
    assert Envelope.from_json(envelope.to_json()) == envelope
    id_ = stored(core, raw)
    core.wake()
    assert core.end(id_)[0] == "answered"


@pytest.mark.parametrize("place", ["admission", "engagement", "quotes"])
def test_a_newer_one_waits_and_goes_on_once_a_worker_can_read_it(core: Core, place: str) -> None:
    id_ = stored(core, newer(WRITTEN[1][0]), place)
    core.wake()
    for _ in range(3):
        record = core.record(id_)
        assert (record["place"], record["back"], record.get("attempt", "0")) == ("due", place, "0")
        passes(core, NEWER_RETRY_S)
    assert core.harness.turns == []
    core.ctx.client.hset(core.ctx.keys.record(id_), "env", WRITTEN[1][0])  # as an up-to-date worker reads it
    passes(core, NEWER_RETRY_S)
    assert core.end(id_)[0] == "answered"


@pytest.mark.parametrize("place", ["admission", "engagement", "quotes"])
def test_a_newer_one_is_dead_in_the_end_with_its_bytes_and_can_be_replayed(core: Core, place: str) -> None:
    raw = newer(WRITTEN[1][0])
    id_ = stored(core, raw, place)
    core.wake()
    for _ in range(WAIT_S // int(NEWER_RETRY_S) + 2):
        passes(core, NEWER_RETRY_S)
    assert core.end(id_) == ("dead", "newer-version")
    assert (letter(core, id_).stage, core.record(id_)["env"]) == (place, raw)
    core.ctx.client.hset(core.ctx.keys.record(id_), "env", WRITTEN[1][0])
    assert store.replay(core.ctx, letter(core, id_), "anna") is None
    core.wake()
    assert core.end(id_)[0] == "answered"
    assert letter(core, id_).status == "replayed"


UNREADABLE: dict[str, str | bytes] = {
    "empty": "",
    "cut off": WRITTEN[1][0][:-9],
    "not UTF-8": b'{"id":"\xff\xfe"}',
    "NUL": b"\x00" * 20,
    "an unknown key of this version": WRITTEN[1][0].replace('"chat_id"', '"mood":1,"chat_id"'),
    "a missing key": WRITTEN[1][0].replace('"chat_id":"anna",', ""),
    "version 0": '{"version":0,' + WRITTEN[1][0][1:],
    "version as text": '{"version":"2",' + WRITTEN[1][0][1:].replace('"chat_id"', '"mood"'),
    "a giant version": '{"version":' + "9" * 5000 + "," + WRITTEN[1][0][1:],
    "deep": "[" * 100_000,
    "a list": "[]",
}


@pytest.mark.parametrize("what", UNREADABLE)
@pytest.mark.parametrize("place", ["admission", "engagement", "quotes"])
def test_what_cannot_be_read_is_a_dead_letter_with_its_bytes(
    core: Core, server: Embedded, what: str, place: str
) -> None:
    raw = UNREADABLE[what]
    id_ = stored(core, raw, place)
    [good] = core.publish(message(2, chat_id="harbour", sender_id="anna"))
    core.wake()
    assert core.end(id_) == ("dead", "unreadable") or (what == "version as text" and core.record(id_)["place"] == "due")
    found = letter(core, id_) if core.end(id_)[0] == "dead" else None
    assert found is None or (found.stage, len(found.error) <= 500) == (place, True)
    with redis.Redis.from_url(server.url) as plain:
        kept = plain.hget(core.ctx.keys.record(id_), "env")
    assert kept == (raw if isinstance(raw, bytes) else raw.encode())
    assert core.end(good)[0] == "answered", "the next one is not held up"
