"""The network between a host and the server swallows everything for a while, and nobody hangs up: for 15 s, which is
longer than a call waits for its answer, and for 40 s, which is longer than all its repetitions."""

from collections.abc import Callable, Generator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.chaos.proxy import Proxy, proxied
from tests.chaos.rig import Rig, Row, rig

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("chaos-network")]

WAYS = [("a",), ("a", "b")]
UNDER_WAY = 20
"""Messages at once: a cable that is cut does not need a busy machine around it."""


@pytest.fixture(scope="module")
def cables(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Rig, dict[str, Proxy]]]:
    with rig(tmp_path_factory.mktemp("network")) as made:
        url = made.server.url
        port = urlsplit(url).port
        assert port is not None
        with proxied(port) as first, proxied(port) as second:
            proxies = {"a": first, "b": second}
            for host in made.hosts:
                if host.name in proxies:
                    _lead(host.config, f":{port}/", f":{proxies[host.name].port}/")
            yield made, proxies


def _lead(config: Path, through: str, to: str) -> None:
    text = config.read_text()
    assert text.count(through) == 1
    config.write_text(text.replace(through, to))


@pytest.mark.parametrize("seconds", [15, 40])
@pytest.mark.parametrize("cut", WAYS, ids=["one host", "all hosts"])
def test_the_network_swallows_everything_for_a_while(
    cut: tuple[str, ...], seconds: int, cables: tuple[Rig, dict[str, Proxy]], figures: Callable[[Row], None]
) -> None:
    hosts, proxies = cables
    who = "all hosts" if len(cut) == len(proxies) else "one host"
    with hosts.scene(f"blackhole of {seconds} s, {who}", under_way=UNDER_WAY) as scene:
        scene.after(100)
        try:
            for name in cut:
                proxies[name].cut()
                scene.faults["cut off"] += 1
            if who == "one host":
                scene.after(50)  # the others go on
            scene.stream.join(seconds / 2)
            sent = len(hosts.chat.sends)
            scene.stream.join(seconds / 2)
            assert who == "one host" or len(hosts.chat.sends) == sent, "something passes"
        finally:
            for name in cut:
                proxies[name].mend()
        scene.after(100)
        scene.judge(figures, frozen=True, within_s=90)
        assert len(hosts.world.living()) == sum(len(host.runs) for host in hosts.hosts), "no process ended over it"
