"""A real server for the tests of the core: one a module, emptied for each test."""

from collections.abc import Iterator

import pytest
import redis
from core_world import Core, core_of

from shared.redis.client import connect
from shared.redis.embedded import Embedded, Kind

KINDS: list[Kind] = ["redis-server", "valkey-server", "wheel"]


@pytest.fixture(scope="module")
def core_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    with Embedded.start(tmp_path_factory.mktemp("redis"), durable=False, kinds=KINDS) as running:
        yield running


@pytest.fixture
def core_client(core_server: Embedded) -> Iterator[redis.Redis]:
    made = connect(core_server.url)
    made.config_set("maxmemory", "0")
    made.flushall()
    yield made
    made.close()


@pytest.fixture
def core(core_client: redis.Redis) -> Core:
    """A process with `settings_of()` and a harness that says what it is told."""
    return core_of(core_client)
