"""What the benchmark says: rows, each with its target, and what went wrong beside every rate."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Final, Literal

COLUMNS: Final = ("what", "ours", "beside", "its", "ratio", "target", "", "lost/doubled/reordered/dropped", "note")


@dataclass(frozen=True, slots=True)
class Trouble:
    """Messages that went wrong. lost: accepted and without an end. doubled: ends too many. reordered: ended before an
    earlier one of its conversation. dropped: ended otherwise than the scene allows."""

    lost: int = 0
    doubled: int = 0
    reordered: int = 0
    dropped: int = 0

    def __add__(self, other: "Trouble") -> "Trouble":
        return Trouble(
            self.lost + other.lost,
            self.doubled + other.doubled,
            self.reordered + other.reordered,
            self.dropped + other.dropped,
        )

    def __str__(self) -> str:
        return f"{self.lost}/{self.doubled}/{self.reordered}/{self.dropped}"


NONE: Final = Trouble()


@dataclass(frozen=True, slots=True)
class Rate:
    """One run: messages a second from the first that is sent to the last end, what went wrong, and milliseconds of
    processor time that a message took of all processes and the server, where the system tells."""

    per_second: float
    trouble: Trouble
    cpu_ms: float | None = None


@dataclass(slots=True)
class Runs:
    """The runs of one kind; medians of them."""

    runs: list[Rate] = field(default_factory=list[Rate])

    def add(self, rate: Rate) -> None:
        """One more run."""
        self.runs.append(rate)

    @property
    def trouble(self) -> Trouble:
        """Of all runs together."""
        return sum((run.trouble for run in self.runs), NONE)

    @property
    def rates(self) -> list[float]:
        """Messages a second of each run, in order."""
        return [run.per_second for run in self.runs]

    @property
    def rate(self) -> float | None:
        """Messages a second."""
        return middle(self.rates)

    @property
    def cpu_ms(self) -> float | None:
        """Processor time of a message, ms."""
        return middle([run.cpu_ms for run in self.runs if run.cpu_ms is not None])


@dataclass(frozen=True, slots=True)
class Target:
    """A bound on a row's ratio, or on our own figure."""

    relation: Literal["at least", "at most"]
    bound: float
    of: Literal["ratio", "ours"] = "ratio"

    def met(self, value: float) -> bool:
        """Whether `value` keeps the bound."""
        return value >= self.bound if self.relation == "at least" else value <= self.bound

    def __str__(self) -> str:
        return f"{self.relation} {self.bound:g}{' times' if self.of == 'ratio' else ''}"


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of ours, beside a peer's where there is one. `unmeasured`: why a figure is missing.

    paired: the ratio where both ran in turn, see `in_turn`; None: that of the two figures.

    trouble: ours. peer_trouble: the peer's, which is told and judged by nobody.
    """

    scene: str
    what: str
    unit: str
    ours: float | None = None
    peer: str = ""
    theirs: float | None = None
    target: Target | None = None
    trouble: Trouble | None = None
    peer_trouble: Trouble | None = None
    note: str = ""
    unmeasured: str = ""
    paired: float | None = None

    @property
    def ratio(self) -> float | None:
        """Ours by theirs."""
        if self.paired is not None:
            return self.paired
        return self.ours / self.theirs if self.ours is not None and self.theirs else None

    @property
    def verdict(self) -> str:
        """`hit`, `missed`, `not measured`, or nothing where there is no target."""
        if self.unmeasured:
            return "not measured"
        value = self.ours if self.target is None or self.target.of == "ours" else self.ratio
        if self.target is None or value is None:
            return ""
        return "hit" if self.target.met(value) else "missed"

    def to_dict(self) -> dict[str, Any]:
        """For `--json`: with ratio, verdict and the target in words."""
        data = {name: value for name, value in asdict(self).items() if name not in ("target", "paired")}
        return data | {"ratio": self.ratio, "target": str(self.target or ""), "verdict": self.verdict}

    def cells(self) -> Sequence[object]:
        """For the table, in the order of COLUMNS."""
        trouble = "" if self.trouble is None else str(self.trouble)
        if self.peer_trouble not in (None, NONE):
            trouble += f" ({self.peer}: {self.peer_trouble})"
        note = f"not measured: {self.unmeasured}" if self.unmeasured else self.note
        return (
            self.what, f"{written(self.ours)} {self.unit}" if self.ours is not None else None, self.peer,
            written(self.theirs), written(self.ratio), self.target, self.verdict, trouble, note,
        )  # fmt: skip


def written(value: float | None) -> str:
    """A figure for people: three digits that mean something."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def middle(values: Sequence[float]) -> float | None:
    """The median; None of none."""
    return float(median(values)) if values else None


def in_turn(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """The median of the ratios of runs that followed each other: what slows a machine for a while slows both."""
    return middle([one / other for one, other in zip(ours, theirs, strict=False) if other])


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (0 to 1) of `values` do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


def sound(rows: Sequence[Row]) -> bool:
    """Whether nothing of ours was lost, doubled, reordered or dropped: else the rates say nothing."""
    return all(row.trouble in (None, NONE) for row in rows)
