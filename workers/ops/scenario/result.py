"""What a scenario came to: filled by the driver, checked by `expect`, printed by `report`."""

import json
from dataclasses import dataclass, field
from typing import Any

from shared.prompt import content_of, reply_block_of
from workers.ops.scenario.model import Scenario


@dataclass(frozen=True, slots=True)
class Failure:
    """An expectation that did not hold: its key, what was expected, what came (both ready to print)."""

    key: str
    expected: str
    came: str


@dataclass(frozen=True, slots=True)
class SentRow:
    """A text that a platform took."""

    text: str
    chat: str
    thread: str | None = None
    reply_to: str | None = None
    account: str = ""


@dataclass(slots=True)
class StepResult:
    """What a step came to; the driver fills it. None and empty mean: nothing of the kind happened.

    disposition, reason, stage: of the step's own message. dispositions: all messages that ended in the step, counted.
    turns: turns first started. order: current texts of those, as they started. elapsed_ms: of the scenario's clock.
    log_text: every log line, metric and audit record of the step, for `log_lacks`.
    """

    disposition: str | None = None
    reason: str | None = None
    stage: str | None = None
    normalised: dict[str, Any] | None = None
    prompt: str | None = None
    system: tuple[str, ...] = ()
    sent: list[SentRow] = field(default_factory=list[SentRow])
    calls: dict[str, int] = field(default_factory=dict[str, int])
    turns: int = 0
    order: list[str] = field(default_factory=list[str])
    dispositions: dict[str, int] = field(default_factory=dict[str, int])
    registered: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    gate: str | None = None
    index_size: dict[str, int] = field(default_factory=dict[str, int])
    warnings: int = 0
    log_text: str = ""
    audit: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    dead: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    harness_inputs: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    judge_inputs: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    interaction_answer: str | None = None
    exit: int | None = None
    json: Any = None
    output: str = ""
    status: int | None = None
    http: int | None = None
    elapsed_ms: int = 0
    failures: list[Failure] = field(default_factory=list[Failure])

    @property
    def reply_block(self) -> dict[str, Any] | None:
        """The parsed reply block of the prompt, or None."""
        return reply_block_of(self.prompt) if self.prompt is not None else None

    @property
    def content(self) -> str | None:
        """What follows the prompt's source block, or None."""
        return content_of(self.prompt) if self.prompt is not None else None

    def to_json(self) -> dict[str, Any]:
        """The step as `--json` shows it."""
        return {
            "disposition": self.disposition,
            "reason": self.reason,
            "stage": self.stage,
            "normalised": self.normalised,
            "prompt": self.prompt,
            "system": "\n\n".join(self.system) or None,
            "reply_block": self.reply_block,
            "sent": [
                {"text": row.text, "reply_to": row.reply_to, "chat": row.chat, "thread": row.thread}
                for row in self.sent
            ],
            "calls": self.calls,
            "failures": [f"{f.key}: expected {f.expected}, came {f.came}" for f in self.failures],
        }


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """A scenario that was run, or that was not: then `problem` says why."""

    scenario: Scenario
    steps: tuple[StepResult, ...] = ()
    problem: str = ""

    @property
    def ok(self) -> bool:
        """True when every expectation held."""
        return not self.problem and not any(step.failures for step in self.steps)

    def to_json(self) -> str:
        """One line of `--json`."""
        shown = {
            "file": self.scenario.file,
            "name": self.scenario.name,
            "ref": self.scenario.ref or None,
            "ok": self.ok,
            "steps": [step.to_json() for step in self.steps],
        }
        return json.dumps(shown | ({"problem": self.problem} if self.problem else {}), ensure_ascii=False)
