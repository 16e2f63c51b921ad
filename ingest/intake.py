"""What every way in says about an event: webhooks, connectors and replays count alike."""

from collections.abc import Sequence
from typing import Literal

from ingest.port import Overloaded
from shared import metrics
from shared.message import Message


def count_received(channel: str, messages: Sequence[Message]) -> None:
    """Count the messages of one event; an event without any (a receipt, a reaction) counts as ignored."""
    kinds = {"process": "message", "edit": "edit", "ignore": "ignore"}
    for kind in [kinds[message.action] for message in messages] or ["ignore"]:
        metrics.events_received.labels(channel, kind).inc()


def overload_reason(error: Overloaded) -> Literal["full", "overloaded"]:
    """The reason for `events_rejected_total`: a backlog that is full, or a server that cannot take more."""
    return "overloaded" if error.scope == "memory" else "full"
