"""The simulation holds over its seeds, repeats a seed exactly, and notices when a guard is taken away."""

from collections.abc import Iterator

import pytest

from shared.redis.client import Redis, connect
from shared.redis.embedded import Embedded
from tests.simulation.driver import KINDS, Failed, run_seed
from tests.simulation.planted import FAULTS

SEEDS = 150
SHARES = 5
"""The seeds are run in so many tests, so that several test processes share them."""
PLANTED = {
    "an existing intent is ignored": range(1, 30),
    "the lane is released at answered": range(1, 10),
    "accept has no guard": range(1, 60),
    "a ticket is given back and nobody is woken": range(1, 10),
    "an earlier message is not waited for": range(1, 30),
    "the end of a turn leaves the depth": range(1, 10),
    "a wake-up's flag is never cleared": range(1, 3),
    "a move is applied though the step did not match": range(50, 120),
}
"""Each fault with seeds of which one must find it; the last one is rare, and its range begins near one that does."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    with Embedded.start(tmp_path_factory.mktemp("redis"), durable=False, kinds=KINDS) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Embedded) -> Iterator[Redis]:
    made = connect(server.url)
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_every_invariant_holds_under_every_seed(share: int, client: Redis, server: Embedded) -> None:
    for seed in range(1 + share, SEEDS + 1, SHARES):
        run_seed(seed, client, server.url)


@pytest.mark.parametrize("seed", [3, 8])
def test_a_seed_is_the_same_story_every_time(seed: int, client: Redis, server: Embedded) -> None:
    first = run_seed(seed, client, server.url)
    again = run_seed(seed, client, server.url, look_every=1)
    assert first.digest() == again.digest()
    assert list(first.events) == list(again.events)


def test_the_simulation_answers_silences_and_kills(client: Redis, server: Embedded) -> None:
    ends: set[str] = set()
    for seed in range(1, 13):
        ends |= {
            rec.disposition for rec in run_seed(seed, client, server.url).look().recs.values() if rec.kind == "msg"
        }
    assert {"answered", "silenced", "duplicate", "dead", "throttled"} <= ends


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str, client: Redis, server: Embedded, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = FAULTS[name]
    if fault.python is not None:
        monkeypatch.setattr(*fault.python)

    def hunt() -> None:
        for seed in PLANTED[name]:
            run_seed(seed, client, server.url, planted=fault.scripts)

    with pytest.raises(Failed, match=r"seed \d+: "):
        hunt()


def test_every_fault_that_can_be_planted_is() -> None:
    assert set(PLANTED) == set(FAULTS)
