"""The simulated processes: workers of every stage, keepers, an operator; each with its own clock and its own watch."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from redis import exceptions as redis_errors

from shared.access import Access
from shared.beats import Beats, Hold, ServerWatch
from shared.sessions import Sessions
from shared.switches import SwitchBoard
from tests.simulation.clocks import SkewedClock
from tests.simulation.strands import Life
from workers.context import Context
from workers.deadletters import store
from workers.keeper.keeper import Keeper
from workers.pipeline import BY_NAME
from workers.runner import Runner

if TYPE_CHECKING:
    from tests.simulation.world import World

AT_ONCE = 4
"""Strands of one process of a stage that works at several things at once."""
SCANNED = 3
"""Records that one look of the slow scan finds; all of them would be most of what happens."""


class SimServer(ServerWatch):
    """The watch of one process. Who starts while the server is down knows it as it was before."""

    def __init__(self, world: "World", clock: SkewedClock) -> None:
        self._world = world
        self._born = False
        super().__init__(world.client, clock, world.settings.pipeline.lease_s, world.keys.run_id)
        self._born = True

    def _identity(self) -> str:
        if self._world.link.down and self._born:
            raise redis_errors.ConnectionError("the server is down (simulated)")
        return f"run {self._world.restarts - self._world.link.down}"


class SimContext(Context):
    """Tokens from the seed."""

    def token(self) -> str:
        return f"{int(self.rng.random() * 2**53):014x}"


class Actor(Life):
    """One process: a worker of `stage`, a keeper or an operator."""

    def __init__(self, world: "World", name: str, stage: str) -> None:
        super().__init__(name)
        self.stage = stage
        self.ctx = surroundings(world, name, self)
        self.runner = Runner(self.ctx, world.plans)
        self.keeper = Keeper(self.ctx, scan=world.mix.scan) if stage == "keeper" else None
        self.hold: Hold | None = None
        self.term = ExitStack()
        self.beaten_ms = world.clock.now_ms()
        self.most = 1 if stage not in BY_NAME or BY_NAME[stage].pool == "solo" else AT_ONCE
        self.heard = world.restarts - world.link.down
        self._world = world
        self._applied = ""
        self._stuck = False
        self.read_only: set[bool] = set()

    def looked(self, raw: Mapping[str, str]) -> None:
        """It read the switches. Read-only once seen stays until somebody applies that it is off."""
        if raw.get("applied", "") != self._applied:
            self._applied, self._stuck = raw.get("applied", ""), False
        self._stuck = self._stuck or raw.get("read_only") == "1"
        self.read_only.add(self._stuck)

    def beat(self, now_ms: int) -> None:
        """Renew what it holds, once a second; who holds nothing only looks whether the server is still the same."""
        if now_ms - self.beaten_ms < 1000 or self.frozen_until_ms > now_ms:
            return
        self.beaten_ms = now_ms
        self.ctx.beats.tick()
        if not self._world.link.down:
            self.heard = self._world.restarts

    async def housekeep(self) -> None:
        """The keeper looks."""
        keeper = self.keeper
        assert keeper is not None
        try:
            keeper.tick()
        except (redis_errors.RedisError, OSError):
            return
        if keeper.elected and (self.hold is None or self.hold.lost):
            self.term.pop_all().close()
            name, token = keeper.lease()
            lease_s = self.ctx.settings.pipeline.lease_s
            self.hold = self.term.enter_context(self.ctx.beats.holding(name, token, lease_s, float("inf")))

    async def replay(self, world: "World") -> None:
        """The operator gives a dead letter back to work; of some, only because doing it twice is all right."""
        try:
            letters = store.find(self.ctx)
            if not letters:
                return
            letter, again = world.rng.choice(letters), world.rng.random() < 0.5
            world.note(f"replays {letter.id}, dead of {letter.reason} in {letter.stage}, again={again}")
            world.books.wishes[letter.id] = again
            store.replay(self.ctx, letter, "simulation", again=again)
        except (redis_errors.RedisError, OSError):
            return


def surroundings(world: "World", name: str, actor: Actor) -> Context:
    """The context of a process that starts now."""
    rng, most_ms = world.rng, world.mix.skew_ms
    drift_ms = rng.choice((0, 0, -50, 50)) if most_ms else 0
    clock = SkewedClock(world.clock, rng.randint(-most_ms, most_ms), drift_ms, most_ms)
    client: Any = Watched(world, actor)
    server = SimServer(world, clock)
    return SimContext(
        client=client,
        keys=world.keys,
        scripts=world.scripts,
        clock=clock,
        config=world.process.config,
        switches=SwitchBoard(client, world.keys),
        access=Access(client, world.keys),
        sessions=Sessions(client, clock, world.keys.prefix),
        beats=Beats(world.scripts, clock, server),
        server=server,
        probe=world,
        rng=rng,
        api=lambda account: world.apis[account.id],
        harness=lambda _: world.harness,
        log_key=world.process.log_key,
        name=name,
    )


class Watched:
    """The link of a process, whose looks at the switches are remembered. What a server answers in an order that is its
    own secret comes sorted: nothing may hang on it."""

    def __init__(self, world: "World", actor: Actor) -> None:
        self._world = world
        self._actor = actor

    def hgetall(self, key: str) -> dict[str, str]:
        """HGETALL."""
        raw: dict[str, str] = dict(sorted(self._world.link.hgetall(key).items()))
        strand = self._world.crew.current
        if key == self._world.keys.switches and strand is not None:
            self._actor.looked(raw)
        return raw

    def set(self, key: str, value: str, **options: Any) -> Any:
        """SET."""
        return self._world.link.set(key, value, **options)

    def get(self, key: str) -> Any:
        """GET."""
        return self._world.link.get(key)

    def scan(self, cursor: int, match: str, count: int) -> tuple[int, list[str]]:
        """Some of the keys, and the end of the round."""
        del cursor, count
        found = sorted(self._world.link.keys(match))
        return 0, self._world.rng.sample(found, min(SCANNED, len(found)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world.link, name)
