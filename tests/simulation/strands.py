"""Strands: pieces of work of the simulated processes, each in a thread of its own, of which exactly one runs at a time.

A strand gives the baton back at every call of the server, at every fault point, and when it waits for the clock. Who
gets it next is the driver's choice, so that every interleaving that two real processes could have comes from the seed.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any


class WorkerDied(BaseException):
    """The process of this strand is dead: nothing of it has an effect any more."""


class Life:
    """A process, as far as its strands are concerned. A frozen one does nothing until `frozen_until_ms`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.frozen_until_ms = 0


class Crew:
    """All strands. `current` is the one that runs, None while the driver does."""

    def __init__(self) -> None:
        self.strands: list[Strand] = []
        self.current: Strand | None = None
        self.baton = threading.Lock()
        self.baton.acquire()

    def start(self, life: Life, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> "Strand":
        """A new strand; it runs only when it is resumed."""
        strand = Strand(self, life, name, work)
        self.strands.append(strand)
        return strand

    def resume(self, strand: "Strand") -> None:
        """Let it run until it gives the baton back. Raises what ended it, unless that was the death of its process."""
        self.current = strand
        strand.turn.release()
        self.baton.acquire()
        self.current = None
        if strand.done:
            self.strands.remove(strand)
            strand.thread.join()
            if strand.error is not None:
                raise strand.error

    def runnable(self, now_ms: int) -> list["Strand"]:
        """Those that could go on now."""
        return [s for s in self.strands if s.life.frozen_until_ms <= now_ms and s.ready()]

    def bury(self, life: Life) -> None:
        """The process dies: each of its strands ends where it stands."""
        life.alive = False
        for strand in [s for s in self.strands if s.life is life]:
            self.resume(strand)


class Strand:
    """One wake-up at work, or one look of the keeper."""

    def __init__(self, crew: Crew, life: Life, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.crew = crew
        self.life = life
        self.name = name
        self.done = False
        self.error: BaseException | None = None
        self.turn = threading.Lock()
        self.turn.acquire()
        self._work = work
        self._waits = False
        self._loop = StrandLoop(self)
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.thread.start()

    def ready(self) -> bool:
        """Whether it could go on without time passing."""
        return not self._waits or not self._loop.idle()

    def pause(self, *, waits: bool = False) -> None:
        """Give the baton back. Raises WorkerDied when the process died meanwhile."""
        if self.life.alive:
            self._waits = waits
            self.crew.baton.release()
            self.turn.acquire()
            self._waits = False
        if not self.life.alive:
            raise WorkerDied(self.name)

    def _run(self) -> None:
        self.turn.acquire()
        try:
            if self.life.alive:
                self._loop.run_until_complete(self._work())
        except WorkerDied:
            pass
        except BaseException as error:
            self.error = error
        finally:
            self._close()
            self.done = True
            self.crew.baton.release()

    def _close(self) -> None:
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        if left:
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.close()


class StrandLoop(asyncio.BaseEventLoop):
    """An event loop without files or sockets: where another would wait, it gives the baton back."""

    def __init__(self, strand: Strand) -> None:
        super().__init__()
        self._strand = strand
        self._selector = self

    def idle(self) -> bool:
        """True when nothing in it could run without time passing."""
        return not self._ready  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]

    def select(self, timeout: float | None) -> list[Any]:
        """Where files would be awaited."""
        if timeout is None and self._strand.life.alive:
            self._strand.pause(waits=True)
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody sleeps who must be woken: the driver looks at `idle`."""
