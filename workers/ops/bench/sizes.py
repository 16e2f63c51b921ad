"""How much is measured: quick for every change, full for a statement."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True)
class Sizes:
    """Messages of one run by kind, and how often each is run; medians are told.

    known: conversations that are there already. alone: messages sent one at a time. cost: messages for commands.
    processes: of each stage. left_out: scenes that run only when they are asked for.
    """

    rounds: int
    other_rounds: int
    answered: int
    silenced: int
    fed: int
    singles: int
    hooks: int
    hook_rounds: int
    alone: int
    cost: int
    known: tuple[int, ...]
    processes: tuple[int, ...]
    overload: int
    left_out: tuple[str, ...] = ()
    conversations: int = 50


QUICK: Final = Sizes(
    rounds=3, other_rounds=1, answered=300, silenced=1_500, fed=3_000, singles=100, hooks=1_000, hook_rounds=3,
    alone=60, cost=30, known=(1_000, 20_000), processes=(1, 2), overload=1_000, left_out=("processes",),
)  # fmt: skip
FULL: Final = Sizes(
    rounds=5, other_rounds=3, answered=2_000, silenced=7_000, fed=7_000, singles=500, hooks=8_000, hook_rounds=5,
    alone=400, cost=200, known=(1_000, 100_000, 1_000_000), processes=(1, 2), overload=20_000,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bench:
    """What a scene is given: sizes, a folder for servers and logs, and whom to tell what happens now."""

    sizes: Sizes
    folder: Path
    tell: Callable[[str], None]
