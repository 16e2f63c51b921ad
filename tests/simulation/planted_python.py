"""The planted faults that are none of a script's."""

from collections.abc import Mapping
from typing import Any, Final

from shared.beats import Hold, ServerWatch
from shared.channels.port import Delivery
from tests.simulation.actors import Watched
from workers.delivery import effects as delivery
from workers.delivery.policy import LedgerState

Patches = tuple[tuple[Any, str, Any], ...]

_intent = delivery._intent  # pyright: ignore[reportPrivateUsage]
_send = delivery._send  # pyright: ignore[reportPrivateUsage]
_write = delivery._write  # pyright: ignore[reportPrivateUsage]


def _intents_ignored(ledger: Mapping[int, LedgerState], parts: int) -> int | str:
    return next((n for n in range(parts) if ledger.get(n) != "sent"), "done")


INTENTS_IGNORED: Final[Patches] = ((delivery, "next_part", _intents_ignored),)


def _no_intent(job: Any, number: int, ledger: Any) -> None:
    del job, number, ledger


async def _then_intent(job: Any, number: int, part: Any) -> Delivery | None:
    sent = await _send(job, number, part)
    _intent(job, number, {})
    return sent


LATE_INTENT: Final[Patches] = ((delivery, "_intent", _no_intent), (delivery, "_send", _then_intent))


def _refusal_ignored(job: Any, number: int, ledger: Any) -> None:
    _intent(job, number, ledger)


def _only_told(hold: Hold, now: float) -> bool:
    del now
    return hold.lost


REFUSAL_IGNORED: Final[Patches] = ((delivery, "_intent", _refusal_ignored), (Hold, "lapse", _only_told))


async def _lease_lost_late(job: Any, number: int, part: Any) -> Delivery | None:
    sent = await _send(job, number, part)
    if sent is not None and job.hold.lapse(job.ctx.clock.monotonic()):
        _write(job, number, sent)
        _write(job, number, Delivery("not-sent", reason="lease-lost"))
        return None
    return sent


LEASE_LOST_LATE: Final[Patches] = ((delivery, "_send", _lease_lost_late),)

_set = Watched.set


def _set_always(self: Watched, key: str, value: str, *, nx: bool = False, **options: Any) -> Any:
    del nx
    return _set(self, key, value, **options)


_get = Watched.get


def _nothing_frozen(self: Watched, key: str) -> Any:
    return None if ":frozen:" in key else _get(self, key)


FROZEN_AGAIN: Final[Patches] = ((Watched, "set", _set_always), (Watched, "get", _nothing_frozen))


def _never(watch: ServerWatch) -> bool:
    del watch
    return False


NEVER_QUIET: Final[Patches] = ((ServerWatch, "quiet", _never),)
