"""The driver: it alone decides what happens next, by the seed; first with faults, then without until all is at rest.

python -m tests.simulation.driver --seeds 1000 [--first 1]
python -m tests.simulation.driver --seed 17
"""

import argparse
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from shared.message import Message
from shared.redis.client import Redis, connect
from shared.redis.embedded import Embedded, Kind
from tests.simulation.invariants import Broken, demand
from tests.simulation.people import message_of
from tests.simulation.world import Listening, World
from workers.runner import Plans
from workers.stages import PLANS

KINDS: list[Kind] = ["redis-server", "valkey-server", "wheel"]
STEPS = 500
"""Steps with faults."""
CALM_MS = 4 * 3_600_000
"""Within so much time everything has ended once the faults stopped."""
FAR_MS = 60_000
"""Nothing alive, and nothing that happens sooner: all is at rest."""
LOOK_EVERY = 8
"""Steps between two looks at everything; one seed alone is looked at after each."""
POINTS = (
    "admission.before_apply", "admission.after_apply", "engagement.before_apply", "engagement.after_apply",
    "quotes.before_apply", "quotes.after_apply", "quotes.after_freeze", "dispatch.after_start", "harness",
    "dispatch.after_answer", "dispatch.before_apply", "dispatch.after_apply", "delivery.after_intent", "send",
    "delivery.after_send", "delivery.before_apply", "delivery.after_apply",
)  # fmt: skip
"""Where a worker may die: before and after each effect."""


class Failed(AssertionError):
    """A seed under which something does not hold."""


class Driver:
    """One seed."""

    def __init__(self, world: World, look_every: int) -> None:
        self.world = world
        self._rng = world.rng
        self._every = look_every
        self._steps = 0
        self._number = 0
        self._left = self._rng.randrange(6, 18)
        self._again: list[Message] = []
        # Every seed has its own mixture, so that a rare fault is not always drowned in others.
        pick = self._rng.choice
        self._loss = pick((0.0, 0.05, 0.3))
        self._twice = pick((0.0, 0.1))
        self._mess = pick((0.0, 0.3))
        self._kills = pick((0.0, 0.0, 0.01, 0.03))
        self._freezes = pick((0.0, 0.0, 0.01))
        self._turns = pick((0.0, 0.0, 0.01))
        world.link.share = pick((0.0, 0.0, 0.01, 0.04))
        self._gentle = not (self._kills or self._freezes or world.link.share)
        world.moods.harness = pick((0.0, 0.2, 0.5))
        world.moods.platform = pick((0.0, 0.3, 0.6))

    def run(self) -> None:
        """Faults, then calm. Raises Broken."""
        for _ in range(STEPS):
            self._step()
        self._calm()
        self.world.rest()
        taken = dict(self.world.books.takeovers)
        demand(not self._gentle or not taken, "nothing is taken over where no worker died and no call failed", taken)

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
            world.advance(world.clock.now_ms() + rng.choice((1, 20, 300, 1000, 3000)))
        else:
            world.advance(min(world.next_ms(), world.clock.now_ms() + 20_000))
        self._mischief()
        self._looked()

    def _looked(self) -> None:
        self._steps += 1
        if self._steps % self._every == 0:
            self.world.look()
        if self.world.broken is not None:
            raise self.world.broken

    def _deliver(self) -> bool:
        world, rng = self.world, self._rng
        lists = world.wakes()
        if not lists:
            return False
        stage, length = rng.choice(lists)
        name = world.take(stage, rng.randrange(length) if rng.random() < self._mess else -1)
        if rng.random() < self._loss:
            world.note(f"the wake-up of {stage} {name} is lost")
            return True
        if not world.wake(stage, name):
            world.note(f"nobody has room for {stage} {name}")  # as one that was taken and then lost
        if rng.random() < self._twice:
            world.wake(stage, name)
        return True

    def _say(self) -> None:
        world, rng = self.world, self._rng
        batch = [self._again.pop()] if self._again else []
        while self._left and (not batch or rng.random() < 0.4):
            self._left -= 1
            self._number += 1
            batch.append(message_of(self._number, rng))
        if not batch:
            return
        if rng.random() < world.link.share * 5:
            world.link.next_fault = rng.choice(("never", "lost", "twice"))
        if not world.publish(batch) or rng.random() < 0.1:
            self._again += batch  # a platform that heard nothing, or sends twice, sends again

    def _mischief(self) -> None:
        world, rng = self.world, self._rng
        if rng.random() < self._kills:
            if rng.random() < 0.7:
                world.die_at = rng.choice(POINTS)
            else:
                world.kill(rng.choice(world.actors))
        if rng.random() < self._freezes:
            actor = rng.choice(world.actors)
            actor.frozen_until_ms = world.clock.now_ms() + rng.choice((2_000, 5_000, 9_000, 30_000))
            world.note(f"{actor.name} is frozen")
        if rng.random() < self._turns:
            self._turn()

    def _turn(self) -> None:
        """Somebody turns a switch, or the harness goes or comes back."""
        world, rng = self.world, self._rng
        what = rng.choice(("read_only", "paused", "outage"))
        on = rng.random() < 0.5
        world.note(f"{what} {'on' if on else 'off'}")
        if what == "outage":
            world.moods.outage = on
        else:
            world.process.switches.write(what, on, "simulation", world.clock.now_ms(), apply=True)

    def _calm(self) -> None:
        """No more faults: everything must come to its end."""
        world = self.world
        world.note("the faults stop")
        world.moods.calm()
        world.link.share, world.die_at = 0.0, None
        for name in ("read_only", "paused"):
            world.process.switches.write(name, False, "simulation", world.clock.now_ms(), apply=True)
        for actor in world.actors:
            actor.frozen_until_ms = 0
        while self._left or self._again:
            self._say()
        since_ms = world.clock.now_ms()
        while (calm_ms := world.clock.now_ms() - since_ms) < CALM_MS:
            world.settle()
            if not world.look().depth and world.next_ms() - world.clock.now_ms() > FAR_MS:
                break
            # What has not moved for long is looked at less and less often.
            world.advance(max(world.next_ms(), world.clock.now_ms() + calm_ms // 60))
            for actor in world.actors:
                if actor.keeper is not None:
                    world.tick(actor)
        world.settle()


def run_seed(
    seed: int,
    client: Redis,
    url: str,
    *,
    look_every: int = LOOK_EVERY,
    plans: Plans = PLANS,
    planted: Mapping[str, tuple[str, str]] | None = None,
) -> World:
    """Run one seed on an empty database. Raises Failed: the seed, what led to it, what does not hold."""
    world = World(seed, client, url, plans=plans, planted=planted)
    with Listening(world):
        try:
            Driver(world, look_every).run()
        except Broken as error:
            events = "\n".join(world.events)
            raise Failed(f"seed {seed}\n{events}\nseed {seed}: {error}") from None
        finally:
            world.close()
    return world


def main() -> int:
    """The command line; 1 when a seed failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=1)
    asked = parser.parse_args()
    seeds = [asked.seed] if asked.seed is not None else range(asked.first, asked.first + asked.seeds)
    failed = 0
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        Embedded.start(Path(folder), durable=False, kinds=KINDS) as server,
    ):
        client = connect(server.url)
        for seed in seeds:
            try:
                run_seed(seed, client, server.url, look_every=1 if asked.seed is not None else LOOK_EVERY)
            except Failed as error:
                failed += 1
                print(error, flush=True)
        client.close()
    print(f"{len(seeds)} seeds, {failed} failed, {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
