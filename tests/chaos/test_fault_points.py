"""A worker dies at each of its fault points in turn, another takes its place: the end is the one that design section 4
names for the state in which it died, and nothing is done twice."""

from collections.abc import Generator
from pathlib import Path

import pytest

from shared.redis.embedded import Embedded
from tests.chaos.harness import Chat, Harness, between
from tests.chaos.load import conserved, examine, tables
from tests.integration.world import STAGES, eventually, server, world
from tests.platforms.emulator import running

MESSAGES = 20
PEOPLE = 5
PLAIN = "answered"

DEATHS = [
    # stage, point, how the one message that was under way ends (all others are answered)
    ("admission", "admission.before_apply", PLAIN),
    ("admission", "admission.after_apply", PLAIN),
    ("engagement", "engagement.before_apply", PLAIN),
    ("engagement", "engagement.after_apply", PLAIN),
    ("engagement", "quotes.after_freeze", PLAIN),  # what quotes nothing is frozen there
    ("quotes", "quotes.before_apply", PLAIN),
    ("quotes", "quotes.after_apply", PLAIN),
    ("quotes", "quotes.after_freeze", PLAIN),
    ("dispatch", "dispatch.after_start", "dead:effect-unknown"),  # running, not idempotent
    ("dispatch", "dispatch.after_answer", "dead:effect-unknown"),
    ("dispatch", "dispatch.before_apply", "dead:effect-unknown"),
    ("dispatch", "dispatch.after_apply", "dead:effect-unknown"),  # answered: delivered; the next was started with it
    ("delivery", "delivery.after_intent", "dead:delivery-unknown"),  # sending: unknown
    ("delivery", "delivery.after_send", "dead:delivery-unknown"),
    ("delivery", "delivery.before_apply", "dead:delivery-unknown"),  # what became of it goes with the move
    ("delivery", "delivery.after_apply", PLAIN),
]


@pytest.fixture(scope="module")
def on(tmp_path_factory: pytest.TempPathFactory) -> Generator[Embedded]:
    with server(tmp_path_factory.mktemp("server")) as started:
        yield started


def _events(quoting: bool) -> list[dict[str, object]]:
    quote = {"reply_to": {"message_id": "q1", "content": "low water at nine"}} if quoting else {}
    return [
        {"message_id": f"m{n}", "sender": f"p{n % PEOPLE}", "text": f"p{n % PEOPLE}:{n}", **quote}
        for n in range(MESSAGES)
    ]


@pytest.mark.xdist_group("chaos")
@pytest.mark.parametrize(("stage", "point", "end"), DEATHS, ids=[f"{stage}-{point}" for stage, point, _ in DEATHS])
def test_a_worker_that_dies_there_leaves_the_right_end(
    stage: str, point: str, end: str, on: Embedded, tmp_path: Path
) -> None:
    with (
        running(Harness(between(5, 10, 1))) as harness,
        running(Chat()) as callback,
        world(tmp_path, on, **tables(harness, callback, PEOPLE)) as now,
    ):
        now.start(*(each for each in STAGES if each != stage), "keeper")
        [dying] = now.start(stage, fault=point)
        ids = now.accept(_events(quoting=stage == "quotes"))
        eventually(lambda: not dying.alive(), 20, f"death at {point}")
        now.start(stage)
        now.rest(40)
        report = examine(now, ids, harness, callback)
        report.hold(frozenset({PLAIN, end}))
        assert report.ends[end] == (MESSAGES if end == PLAIN else 1), report.ends
        conserved(now)
        if point in ("delivery.after_send", "delivery.before_apply"):
            assert len(callback.sends) == MESSAGES, "each was sent once, whatever is known of it"
