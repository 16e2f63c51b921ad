"""The publisher over a real server: everything or nothing, in order, and nobody takes another along."""

import asyncio
import zlib
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import pytest
import redis
from core_world import NOW_MS, Core, core_of, message, settings_of
from redis.exceptions import ConnectionError as ServerGone

from ingest.port import Accepted, Overloaded, Unavailable
from ingest.publisher import MEMORY_EVERY_S, Publisher
from shared.envelope import Envelope
from shared.message import Message
from shared.redis.client import connect
from shared.redis.embedded import Embedded
from shared.redis.scripts import Scripts
from shared.settings import Settings

T = TypeVar("T")


def publisher(core: Core, settings: Settings | None = None, scripts: Scripts | None = None) -> Publisher:
    used = settings or core.ctx.settings
    return Publisher(core.ctx.client, scripts or core.ctx.scripts, lambda: used, core.clock.now_ms, 64)


def calls_of(core: Core, work: Callable[[], Coroutine[Any, Any, T]]) -> tuple[T, int]:
    """What comes of the work, and how many scripts the server ran for it."""
    before = ran(core)
    return asyncio.run(work()), ran(core) - before


def ran(core: Core) -> int:
    stats: dict[str, Any] = core.ctx.client.info("commandstats")
    return sum(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("evalsha", "eval"))


def test_all_ids_come_back_in_the_order_given(core: Core) -> None:
    texts = [f"nr {n}" for n in range(10)]
    accepted = asyncio.run(publisher(core).accept([message(n, text=t) for n, t in enumerate(texts)], NOW_MS))
    read = [Envelope.from_json(core.record(i)["env"]) for i in accepted.ids]
    assert [e.message.text for e in read] == texts
    assert [e.id for e in read] == list(accepted.ids)
    assert {e.received_at_ms for e in read} == {NOW_MS}
    assert [int(core.record(i)["ticket"]) for i in accepted.ids] == list(range(1, 11))


def test_nothing_given_asks_nobody(core: Core) -> None:
    accepted, calls = calls_of(core, lambda: publisher(core).accept([], NOW_MS))
    assert (accepted, calls) == (Accepted(()), 0)


def test_requests_that_come_together_share_one_call(core: Core) -> None:
    core.publish(message("warm"))  # the script is known from here on
    one = publisher(core)

    async def work() -> list[Accepted]:
        return await asyncio.gather(*(one.accept([message(n), message(f"{n}b")], NOW_MS) for n in range(20)))

    accepted, calls = calls_of(core, work)
    assert calls == 1
    assert len({i for a in accepted for i in a.ids}) == 40


def test_a_call_holds_about_batch_max_messages(core: Core) -> None:
    core.publish(message("warm"))
    one = publisher(core, settings_of({"ingest": {"batch_max": 5}}))

    async def work() -> list[Accepted]:
        return await asyncio.gather(*(one.accept([message(n)], NOW_MS) for n in range(20)))

    accepted, calls = calls_of(core, work)
    assert (len(accepted), calls) == (20, 4)


def test_a_cancelled_caller_does_not_take_the_others_along(core: Core) -> None:
    one = publisher(core, settings_of({"ingest": {"batch_linger_ms": 50}}))

    async def work() -> list[Accepted | BaseException]:
        tasks = [asyncio.create_task(one.accept([message(n)], NOW_MS)) for n in range(3)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, second, third = asyncio.run(work())
    assert isinstance(first, asyncio.CancelledError)
    assert isinstance(second, Accepted)
    assert isinstance(third, Accepted)
    assert core.record(third.ids[0])["place"] == "admission"


def test_a_full_account_does_not_refuse_another_one(core_client: redis.Redis) -> None:
    settings = settings_of(
        {"ingest": {"max_account_depth": 2}, "accounts": [{"id": n, "channel": "mock"} for n in ("full", "free")]}
    )
    core = core_of(core_client, settings)
    one = publisher(core)

    async def work() -> list[Accepted | BaseException]:
        names = ["full", "free", "full", "full", "free"]
        calls = [one.accept([message(n, account=name)], NOW_MS) for n, name in enumerate(names)]
        return await asyncio.gather(*calls, return_exceptions=True)

    said = asyncio.run(work())
    assert [type(s) for s in said] == [Accepted, Accepted, Accepted, Overloaded, Accepted]
    refused = said[3]
    assert isinstance(refused, Overloaded)
    assert (refused.scope, refused.retry_after_s > 0) == ("account", True)
    assert core_client.hgetall(core.ctx.keys.depth) == {"full": "2", "free": "2", "*": "4"}


def test_one_request_is_taken_whole_or_not_at_all(core: Core) -> None:
    one = publisher(core, settings_of({"ingest": {"max_account_depth": 2}}))
    with pytest.raises(Overloaded):
        asyncio.run(one.accept([message(n) for n in range(3)], NOW_MS))
    assert core.ctx.client.keys("t:rec:*") == []
    assert core.ctx.client.hgetall(core.ctx.keys.depth) == {}


def test_the_whole_backlog_is_bounded_too(core: Core) -> None:
    one = publisher(core, settings_of({"ingest": {"max_queue_depth": 1}}))
    asyncio.run(one.accept([message(1)], NOW_MS))
    with pytest.raises(Overloaded) as refused:
        asyncio.run(one.accept([message(2)], NOW_MS))
    assert refused.value.scope == "global"


def test_at_90_percent_of_the_memory_nothing_is_accepted(core: Core) -> None:
    used = int(core.ctx.client.info("memory")["used_memory"])
    try:
        core.ctx.client.config_set("maxmemory", str(int(used / 0.85)))
        asyncio.run(publisher(core).accept([message(1)], NOW_MS))
        core.ctx.client.config_set("maxmemory", str(int(used / 0.95)))
        with pytest.raises(Overloaded) as refused:
            asyncio.run(publisher(core).accept([message(2)], NOW_MS))
    finally:
        core.ctx.client.config_set("maxmemory", "0")
    assert refused.value.scope == "memory"
    assert len(core.ctx.client.keys("t:rec:*")) == 1


def test_a_server_that_is_full_already_says_memory(core: Core) -> None:
    one = publisher(core)
    asyncio.run(one.accept([message(1)], NOW_MS))
    assert MEMORY_EVERY_S >= 1  # the look at the memory is kept, so that this is the script's own refusal
    core.ctx.client.config_set("maxmemory", "1")
    try:
        with pytest.raises(Overloaded) as refused:
            asyncio.run(one.accept([message(2)], NOW_MS))
    finally:
        core.ctx.client.config_set("maxmemory", "0")
    assert refused.value.scope == "memory"


def test_c10_a_server_that_is_gone_acknowledges_nothing(core: Core, tmp_path: Any) -> None:
    with Embedded.start(tmp_path, durable=False, kinds=["redis-server", "valkey-server", "wheel"]) as running:
        client = connect(running.url)
        one = publisher(core, scripts=Scripts(client, "t:"))

    async def work() -> list[Accepted | BaseException]:
        return await asyncio.gather(*(one.accept([message(n)], NOW_MS) for n in range(3)), return_exceptions=True)

    said = asyncio.run(work())
    assert [type(s) for s in said] == [Unavailable] * 3
    with suppress(ServerGone):
        client.close()
    assert core.ctx.client.keys("t:rec:*") == []


def lanes_of(core: Core, *messages: Message) -> list[str]:
    return [core.record(i)["lane"] for i in core.publish(*messages)]


def group(number: int, sender: str, **changes: Any) -> Message:
    return message(number, chat_id="harbour", chat_type="group", sender_id=sender, **changes)


def test_a_lane_is_a_chat_and_thread_by_default(core: Core) -> None:
    a, b, c = lanes_of(core, group(1, "anna"), group(2, "bert"), group(3, "anna", thread_id="9"))
    assert a == b != c


def test_with_session_scope_sender_every_sender_has_a_lane(core_client: redis.Redis) -> None:
    core = core_of(core_client, settings_of(session_scope="sender"))
    a, b, again = lanes_of(core, group(1, "anna"), group(2, "bert"), group(3, "anna"))
    assert a == again != b


def test_a_route_may_choose_the_scope_of_one_chat(core_client: redis.Redis) -> None:
    route = {"chat": "harbour", "session_scope": "sender"}
    core = core_of(core_client, settings_of({"routes": [route]}))
    a, b = lanes_of(core, group(1, "anna"), group(2, "bert"))
    other = [
        group(
            n,
            s,
        ).model_copy(update={"chat_id": "quay"})
        for n, s in ((3, "anna"), (4, "bert"))
    ]
    c, d = lanes_of(core, *other)
    assert a != b
    assert c == d


def test_the_partition_is_the_crc32_of_account_and_chat(core: Core) -> None:
    chats = ["harbour", "群", "-100", "anna"]
    ids = core.publish(*(message(n, chat_id=chat) for n, chat in enumerate(chats)))
    wanted = [zlib.crc32(f"demo{chat}".encode()) % 64 for chat in chats]
    assert [int(core.record(i)["part"]) for i in ids] == wanted
    assert [core.ctx.client.zscore(core.ctx.keys.at("admission", str(p)), i) for i, p in zip(ids, wanted, strict=True)]
