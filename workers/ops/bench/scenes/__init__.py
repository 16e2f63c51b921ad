"""What is measured, by the name that `--only` takes. A scene is a function from a Bench to its rows."""

from collections.abc import Callable, Iterator
from typing import Final

from workers.ops.bench.figures import Row
from workers.ops.bench.scenes.conversations import conversations
from workers.ops.bench.scenes.cost import cost
from workers.ops.bench.scenes.edge import edge
from workers.ops.bench.scenes.idle import idle
from workers.ops.bench.scenes.overload import overload
from workers.ops.bench.scenes.processes import processes
from workers.ops.bench.scenes.rates import rates
from workers.ops.bench.sizes import Bench

Scene = Callable[[Bench], Iterator[Row]]

SCENES: Final[dict[str, Scene]] = {
    "rates": rates,
    "idle": idle,
    "cost": cost,
    "conversations": conversations,
    "processes": processes,
    "edge": edge,
    "overload": overload,
}
