"""The harness that says what it was told: for demos, tests and a first start without any model."""

from collections.abc import Callable

from shared.channels.port import Part
from shared.harness.port import Answer, HarnessRefused, HistoryPage, Question, Turn, TurnEvent


class Echo:
    """Answers the current text, byte for byte, and nothing when there is none. Keeps no session, asks no question."""

    @property
    def idempotent(self) -> bool:
        """An echo has no effect."""
        return True

    async def ask(self, turn: Turn, on_event: Callable[[TurnEvent], None]) -> Answer:
        """The current text as one part; without a text no part at all."""
        return Answer((Part("text", turn.text),) if turn.text else ())

    async def resume(self, turn: Turn, url: str, on_event: Callable[[TurnEvent], None]) -> Answer:
        """An echo is repeated instead: it has no turn URL."""
        return await self.ask(turn, on_event)

    async def cancel(self, turn: Turn, url: str | None) -> None:
        """Nothing runs that could be stopped."""

    async def answer(self, turn: Turn, question: Question, text: str, on_event: Callable[[TurnEvent], None]) -> Answer:
        """Raises HarnessRefused: an echo never asks."""
        raise HarnessRefused("the echo harness asks no questions")

    async def history(self, session: str, before_ms: int, limit: int) -> HistoryPage:
        """Always empty."""
        return HistoryPage((), more=False)
