"""Tells the consumer's loop that a thread has become free.

With `worker_disable_prefetch` a worker whose threads are all busy has no BRPOP under way, and the end of a task in a
thread is nothing that its event loop waits for: stock Celery then sits until its next timer, up to a second, before it
takes another message. So every task's end writes a byte to a socket that the loop reads.
"""

import socket
from typing import Any, Final

from celery.bootsteps import StartStopStep
from celery.concurrency.thread import TaskPool

_READ_BYTES: Final = 4096


class Waker(StartStopStep):
    """A step of the consumer; for `app.steps["consumer"]`. Only where tasks run in threads."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, parent: Any, **kwargs: Any) -> None:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._listens = False
        super().__init__(parent, **kwargs)

    def include_if(self, parent: Any) -> bool:
        return isinstance(parent.pool, TaskPool) and parent.hub is not None

    def start(self, parent: Any) -> None:
        """Runs at every connection: a lost one empties the loop."""
        parent.hub.add_reader(self._reader, self._drain)
        if not self._listens:
            self._listens = True
            self._listen(parent.pool)

    def _listen(self, pool: Any) -> None:
        submit = pool.on_apply

        def on_apply(*args: Any, **kwargs: Any) -> Any:
            result = submit(*args, **kwargs)
            # The future is done after the task's callbacks, which give the slot back.
            result.f.add_done_callback(self._wake)
            return result

        pool.on_apply = on_apply

    def _wake(self, _: Any) -> None:
        try:
            self._writer.send(b"\0")
        except BlockingIOError:
            pass  # full of bytes that wake the loop as well

    def _drain(self) -> None:
        self._reader.recv(_READ_BYTES)
