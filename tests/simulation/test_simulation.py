"""The simulation holds over its seeds, repeats a seed exactly, and notices when a guard is taken away."""

from collections.abc import Iterator

import pytest

from shared.redis.client import Redis
from shared.redis.embedded import Embedded
from tests.simulation.driver import KINDS, Failed, reach, run_seed
from tests.simulation.planted import FAULTS

SEEDS = 2000
SHARES = 40
"""The seeds are run in so many tests, so that several test processes share them."""
SPAN = 80
"""Seeds of which one must find a planted fault; they begin near one that does."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    with Embedded.start(tmp_path_factory.mktemp("redis"), durable=False, kinds=KINDS) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Embedded) -> Iterator[Redis]:
    made = reach(server.url)
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_every_invariant_holds_under_every_seed(share: int, client: Redis, server: Embedded) -> None:
    for seed in range(1 + share, SEEDS + 1, SHARES):
        run_seed(seed, client, server.url)


@pytest.mark.parametrize("mixed", [{}, {"calls": 0.04, "rollbacks": 0.01, "replays": 0.02, "scan": True}])
def test_a_seed_is_the_same_story_every_time(mixed: dict[str, float], client: Redis, server: Embedded) -> None:
    first = run_seed(3, client, server.url, mixed=mixed)
    again = run_seed(3, client, server.url, mixed=mixed, look_every=1)
    assert first.digest() == again.digest()
    assert list(first.events) == list(again.events)


@pytest.mark.slow
def test_the_simulation_meets_what_can_happen(client: Redis, server: Embedded) -> None:
    ends: set[str] = set()
    restarts = 0
    for seed in range(1, 25):
        world = run_seed(seed, client, server.url)
        restarts += world.restarts
        ends |= {rec.disposition for rec in world.look().recs.values() if rec.kind == "msg"}
    assert restarts
    assert {"answered", "silenced", "duplicate", "conflict", "denied", "skipped", "dead", "throttled"} <= ends


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str, client: Redis, server: Embedded) -> None:
    fault = FAULTS[name]

    def hunt() -> None:
        for seed in range(fault.first, fault.first + SPAN):
            run_seed(seed, client, server.url, planted=fault.scripts, mixed=fault.mix)

    with fault.planted(), pytest.raises(Failed, match=r"seed \d+: "):
        hunt()
