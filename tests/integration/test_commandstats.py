"""What a message costs in Redis commands, counted by the server over a thousand silenced and a thousand answered ones.

The ceilings are generous: they are there so that a regression is noticed. The figures are in the test's output.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.world import STAGES, World, server, world

MESSAGES = 1_000
PEOPLE = 50
BATCH = 50
SILENCED_MOST = 45
ANSWERED_MOST = 190


def _answered(number: int) -> dict[str, Any]:
    return {"message_id": f"a{number}", "sender": f"p{number % PEOPLE}", "text": "when is low water?"}


def _silenced(number: int) -> dict[str, Any]:
    group = {"chat": f"g{number % PEOPLE}", "chat_type": "group"}
    return {"message_id": f"s{number}", "sender": f"p{number % 7}", "text": "the tide is out", **group}


def _counted(now: World) -> Counter[str]:
    stats: dict[str, dict[str, int]] = now.process.client.info("commandstats")
    return Counter({name.removeprefix("cmdstat_"): row["calls"] for name, row in stats.items()})


def _cost(now: World, event: Callable[[int], dict[str, Any]], end: str) -> tuple[float, str]:
    now.accept([event(-1)])
    now.rest(30)
    before = _counted(now)
    ids: list[str] = []
    for first in range(0, MESSAGES, BATCH):
        ids += now.accept([event(n) for n in range(first, first + BATCH)])
    now.rest(60)
    spent = _counted(now) - before
    assert now.dispositions(ids) == {end: MESSAGES}
    parts = ", ".join(f"{name} {calls / MESSAGES:.1f}" for name, calls in spent.most_common(12))
    return spent.total() / MESSAGES, parts


@pytest.mark.slow
@pytest.mark.xdist_group("chaos")
def test_redis_commands_a_message(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    account = {
        "id": "demo", "channel": "mock", "self_id": "bot", "members": [f"p{n}" for n in range(PEOPLE)],
        "direct_per_minute": 0, "ack": "none", "join_s": 0,
    }  # fmt: skip
    quiet = {"notices": {"queued": ""}, "pipeline": {"lane_max": 10_000}, "accounts": [account]}
    with server(tmp_path) as on, world(tmp_path, on, **quiet) as now:
        now.start(*STAGES, "keeper")
        silenced, silenced_parts = _cost(now, _silenced, "silenced")
        answered, answered_parts = _cost(now, _answered, "answered")
    print(f"\nRedis commands for a silenced message: {silenced:.1f} ({silenced_parts})")
    print(f"Redis commands for an answered message: {answered:.1f} ({answered_parts})")
    record_property("redis_commands_silenced", round(silenced, 1))
    record_property("redis_commands_answered", round(answered, 1))
    assert silenced <= SILENCED_MOST
    assert answered <= ANSWERED_MOST
