"""START HERE: the stages in order. Queue names, metric labels and the README's diagram derive from this table.

ingest ─► admission ─► engagement ─► quotes ─► dispatch ─► delivery ─► platforms
                          (judge)
"""

from dataclasses import dataclass
from typing import Final, Literal

from shared.outcome import Stage
from shared.redis.wakeups import queue_name


@dataclass(frozen=True, slots=True)
class StageSpec:
    """One stage.

    wake: what its wake-ups name. next: where a message goes on. pool: Celery's. concurrency: threads by default.
    limit_s: how long one claim may be renewed (dispatch: the harness's `timeout_s` and this as a margin).
    """

    name: Stage
    wake: Literal["partition", "id", "harness"]
    next: Stage | None
    pool: Literal["solo", "threads"]
    concurrency: int
    limit_s: float

    @property
    def queue(self) -> str:
        """The Celery queue that wakes it."""
        return queue_name(self.name)


STAGES: Final[tuple[StageSpec, ...]] = (
    StageSpec("admission", "partition", "engagement", "solo", 1, 60),
    StageSpec("engagement", "partition", "quotes", "solo", 1, 60),
    StageSpec("judge", "id", "engagement", "threads", 8, 30),
    StageSpec("quotes", "id", "dispatch", "threads", 8, 60),
    StageSpec("dispatch", "harness", "delivery", "threads", 16, 30),
    StageSpec("delivery", "id", None, "threads", 8, 120),
)
BY_NAME: Final = {spec.name: spec for spec in STAGES}
BATCH: Final = 64
"""Messages of a partition that are gated in one move (design, section 3)."""
