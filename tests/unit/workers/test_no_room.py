"""A server without room, in memory or on disk: what has begun goes on to its end, and what has happened is insisted on
(design, section 3, Retention and Rollback)."""

import asyncio

import pytest
import redis
from core_world import Core, message
from redis import exceptions as redis_errors

from shared.beats import Hold
from workers.apply import insisted


def test_at_the_memory_limit_what_was_accepted_goes_on_and_nothing_is_counted(
    core: Core, core_client: redis.Redis
) -> None:
    [id_] = core.publish(message(1))
    core_client.config_set("maxmemory", "1")
    core.wake("admission", "engagement", "quotes", "dispatch", "delivery")
    record = core.record(id_)
    assert record["place"] in ("ended", "due"), "frozen, and answered unless its session cannot be written yet"
    assert int(record.get("attempt", 0)) == 0
    assert int(record.get("takeovers", 0)) == 0


REFUSALS = [
    redis_errors.ConnectionError("gone"),
    redis_errors.TimeoutError("silent"),
    redis_errors.ResponseError("MISCONF Errors writing to the AOF file: No space left on device"),
    redis_errors.ResponseError("NOREPLICAS Not enough good replicas to write."),
    redis_errors.ReadOnlyError("You can't write against a read only replica."),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda error: str(error).split(" ", 1)[0])
def test_a_result_is_written_again_until_the_server_takes_it(refusal: Exception, core: Core) -> None:
    refusals = [refusal, refusal]

    def write() -> str:
        if refusals:
            raise refusals.pop()
        return "written"

    hold = Hold("turn:E1", "token", 30, until=60, renewed=0)
    assert asyncio.run(insisted(core.ctx, hold, write)) == "written"


def test_a_fault_of_the_call_itself_is_not_repeated(core: Core) -> None:
    def write() -> str:
        raise redis_errors.ResponseError("user_script:12: attempt to index a nil value")

    with pytest.raises(redis_errors.ResponseError, match="user_script"):
        asyncio.run(insisted(core.ctx, Hold("turn:E1", "token", 30, until=60, renewed=0), write))
