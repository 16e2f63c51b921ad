"""The driver: it alone decides what happens next, by the seed; first with faults, then without until all is at rest.

python -m tests.simulation.driver --seeds 1000 [--first 1] [--jobs 2]
python -m tests.simulation.driver --seed 17
"""

import argparse
import multiprocessing
import os
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import redis

from shared.message import Message
from shared.outcome import Stage
from shared.redis.client import Redis
from shared.redis.embedded import Embedded, Kind
from tests.simulation.invariants import Broken, demand
from tests.simulation.listening import listening
from tests.simulation.people import message_of
from tests.simulation.reference import End
from tests.simulation.world import World
from workers.keeper.keeper import TICK_S
from workers.runner import Plans
from workers.stages import PLANS

KINDS: list[Kind] = ["redis-server", "valkey-server", "wheel"]
STEPS = 800
"""Steps with faults."""
PACE = ((1, 20, 300, 1000, 3000), (1, 300, 3000, 10_000, 30_000))
"""Times that pass in one step, ms: in a hurry, and at leisure."""
REPLAYS = 12
"""Letters that an operator gives back when the faults have stopped."""
CALM_MS = 4 * 3_600_000
"""Within so much time everything has ended once the faults stopped."""
FAR_MS = 60_000
"""Nothing alive, and nothing that happens sooner: all is at rest."""
TICK_MS = int(TICK_S * 1000)
LOOK_EVERY = 8
"""Steps between two looks at everything; one seed alone is looked at after each."""


SHARE = 100
"""Seeds that one process runs on one server before it takes the next ones."""


class Failed(AssertionError):
    """A seed under which something does not hold."""


class Driver:
    """One seed."""

    def __init__(self, world: World, look_every: int) -> None:
        self.world = world
        self._rng = world.rng
        self._mix = world.mix
        self._every = look_every
        self._steps = 0
        self._number = 0
        self._left = self._rng.randrange(6, 22)
        self._again: list[Message] = []
        self._full_until_ms = 0
        self._smooth = self._mix.gentle and not self._mix.loss and not self._mix.mess

    def run(self) -> None:
        """Faults, then calm. Raises Broken."""
        for _ in range(STEPS):
            self._step()
        self._calm()
        self.world.rest()
        taken = dict(self.world.books.takeovers)
        demand(not self._mix.gentle or not taken, "nothing is taken over where nobody died or was cut off", taken)

    def _step(self) -> None:
        world, rng = self.world, self._rng
        runnable = world.crew.runnable(world.clock.now_ms())
        chance = rng.random()
        if runnable and chance < 0.8:
            world.resume(rng.choice(runnable))
        elif chance < 0.92 and self._deliver():
            pass
        elif chance < 0.95:
            self._say()
        elif chance < 0.98:
            world.tick(rng.choice([a for a in world.actors if a.stage == "keeper"]))
        elif runnable or rng.random() < 0.5:
            world.advance(world.clock.now_ms() + rng.choice(PACE[self._mix.leisure]))
        else:
            world.advance(min(world.next_ms(), world.clock.now_ms() + 20_000))
        self._mischief()
        self._looked()

    def _looked(self) -> None:
        self._steps += 1
        if self._smooth and not self.world.crew.strands:
            self.world.quiescent()
        if self._steps % self._every == 0:
            self.world.look()
        if self.world.broken is not None:
            raise self.world.broken

    def _deliver(self) -> bool:
        world, rng = self.world, self._rng
        lists: list[tuple[Stage, int]] = [(stage, n) for stage, n in world.wakes() if world.room(stage)]
        if not lists:
            return False
        stage, length = rng.choice(lists)
        name = world.take(stage, rng.randrange(length) if rng.random() < self._mix.mess else -1)
        if rng.random() < self._mix.loss:
            world.note(f"the wake-up of {stage} {name} is lost")
            return True
        world.wake(stage, name)
        if rng.random() < self._mix.twice:
            world.wake(stage, name)
        return True

    def _say(self) -> None:
        world, rng = self.world, self._rng
        batch = [self._again.pop()] if self._again else []
        while self._left and (not batch or rng.random() < 0.4):
            self._left -= 1
            self._number += 1
            batch.append(message_of(self._number, rng, world.clock.now_ms(), self._mix))
        if not batch:
            return
        if rng.random() < world.link.share * 5:
            world.link.next_fault = rng.choice(("never", "lost", "twice", "late"))
        if not world.publish(batch) or rng.random() < 0.1:
            self._again += batch  # a platform that heard nothing, or sends twice, sends again

    def _mischief(self) -> None:
        world, rng, mix = self.world, self._rng, self._mix
        if rng.random() < mix.kills:
            if world.points and rng.random() < 0.7:
                world.die_at = rng.choice(sorted(world.points))
            else:
                world.kill(rng.choice(world.actors))
        if rng.random() < mix.freezes:
            actor = rng.choice(world.actors)
            actor.frozen_until_ms = world.clock.now_ms() + rng.choice((2_000, 5_000, 9_000, 30_000))
            world.note(f"{actor.name} is frozen")
        if rng.random() < mix.turns:
            self._turn()
        if rng.random() < mix.replays:
            world.replay()
        self._server()

    def _server(self) -> None:
        """The server loses its last second, or has no memory left for a while."""
        world, rng, mix = self.world, self._rng, self._mix
        if world.backup.until_ms is not None:
            if rng.random() < 0.06:
                world.lose()
        elif rng.random() < mix.rollbacks and not world.link.down:
            world.backup.keep(world.clock.now_ms())
        if rng.random() < mix.full:
            world.note("the memory is full")
            world.link.full, self._full_until_ms = True, world.clock.now_ms() + rng.choice((200, 3_000, 20_000))
        if world.link.full and world.clock.now_ms() >= self._full_until_ms:
            world.note("there is memory again")
            world.link.full = False

    def _turn(self) -> None:
        """Somebody turns a switch, or the harness goes or comes back."""
        world, rng = self.world, self._rng
        what = rng.choice(("read_only", "paused", "outage"))
        on = rng.random() < 0.5
        world.note(f"{what} {'on' if on else 'off'}")
        if what == "outage":
            world.moods.outage = on
        elif not world.link.down:
            apply = on or rng.random() < 0.7
            world.process.switches.write(what, on, "simulation", world.clock.now_ms(), apply=apply)

    def _calm(self) -> None:
        """No more faults: everything must come to its end."""
        world = self.world
        world.note("the faults stop")
        world.moods.calm()
        world.link.share, world.die_at, world.link.full = 0.0, None, False
        world.backup.until_ms = None
        world.link.spoils = 0.0
        for name in ("read_only", "paused"):
            world.process.switches.write(name, False, "simulation", world.clock.now_ms(), apply=True)
        for actor in world.actors:
            actor.frozen_until_ms = 0
        while self._left or self._again:
            self._say()
            if world.link.down:
                world.advance(world.clock.now_ms() + TICK_MS)
        world.settle()
        if self._smooth and not world.crew.strands:
            world.quiescent()
        if self._mix.replays:
            self._replay_all()
        since_ms = world.clock.now_ms()
        while (calm_ms := world.clock.now_ms() - since_ms) < CALM_MS:
            world.settle()
            if not world.look().depth and world.next_ms() - world.clock.now_ms() > FAR_MS:
                break
            # What has not moved for long is looked at less and less often.
            world.advance(max(world.next_ms(), world.clock.now_ms() + max(TICK_MS, calm_ms // 60)))
            for actor in world.actors:
                if actor.keeper is not None:
                    world.tick(actor)
        world.settle()

    def _replay_all(self) -> None:
        """The operator gives many letters back, one right after the other."""
        world = self.world
        for _ in range(REPLAYS):
            world.replay()
            world.settle()
            world.advance(world.clock.now_ms() + self._rng.choice((1, TICK_MS)))


def run_seed(
    seed: int,
    client: Redis,
    url: str,
    *,
    look_every: int = LOOK_EVERY,
    plans: Plans = PLANS,
    planted: Mapping[str, Sequence[tuple[str, str]]] | None = None,
    mixed: Mapping[str, Any] | None = None,
) -> World:
    """Run one seed on an empty database. Raises Failed: the seed, what led to it, what does not hold."""
    world = World(seed, client, url, plans=plans, planted=planted, mixed=mixed)
    with listening(world):
        try:
            Driver(world, look_every).run()
        except Broken as error:
            events = "\n".join(world.events)
            raise Failed(f"seed {seed}\n{events}\nseed {seed}: {error}") from None
        finally:
            world.close()
    return world


def reach(url: str) -> Redis:
    """A client with one connection: only one strand runs at a time."""
    return redis.Redis.from_url(url, decode_responses=True, single_connection_client=True)


@dataclass(frozen=True, slots=True)
class Tally:
    """What some seeds came to. `lost`: messages that a server forgot although it had taken them; `doubled`: questions
    and sends that it let happen twice, because it forgot the first."""

    seeds: int = 0
    failed: int = 0
    restarts: int = 0
    lost: int = 0
    doubled: int = 0
    decided: Counter[End] = field(default_factory=Counter[End])

    def with_world(self, world: World) -> "Tally":
        """And one more that held."""
        decided = self.decided + world.referee.decided
        lost, doubled = self.lost + world.backup.lost, self.doubled + world.books.doubled
        return Tally(self.seeds + 1, self.failed, self.restarts + world.restarts, lost, doubled, decided)

    def with_failure(self) -> "Tally":
        """And one more that did not."""
        return replace(self, seeds=self.seeds + 1, failed=self.failed + 1)

    def __add__(self, other: "Tally") -> "Tally":
        numbers = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        return Tally(**numbers)


def run_share(seeds: range, look_every: int = LOOK_EVERY) -> Tally:
    """Run some seeds on a server of their own, and print what does not hold."""
    tally = Tally()
    with (
        tempfile.TemporaryDirectory() as folder,
        Embedded.start(Path(folder), durable=False, kinds=KINDS) as server,
        closing(reach(server.url)) as client,
    ):
        for seed in seeds:
            try:
                tally = tally.with_world(run_seed(seed, client, server.url, look_every=look_every))
            except Failed as error:
                tally = tally.with_failure()
                print(error, flush=True)
    return tally


def main() -> int:
    """The command line; 1 when a seed failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    began = time.monotonic()
    if asked.seed is not None:
        tally = run_share(range(asked.seed, asked.seed + 1), look_every=1)
    else:
        end = asked.first + asked.seeds
        shares = [range(n, min(n + SHARE, end)) for n in range(asked.first, end, SHARE)]
        with multiprocessing.get_context("spawn").Pool(min(asked.jobs, len(shares))) as pool:
            tally = sum(pool.imap_unordered(run_share, shares), Tally())
    print(
        f"{tally.seeds} seeds, {tally.failed} failed, {time.monotonic() - began:.0f} s;"
        f" {tally.decided.total()} decisions of {len(tally.decided)} kinds;"
        f" {tally.restarts} restarts forgot {tally.lost} messages and doubled {tally.doubled} questions and sends"
    )
    return 1 if tally.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
