"""Every metric of Millstream, once: name, labels, who exposes it, and a sentence on what it means and what to do.

A process registers only what it owns (`start`), so that a gauge of the keeper is never shown as 0 by a worker. Label
values are closed sets; none is ever a person, conversation, message, task, host, exception text or URL. A reason
or call that is not in its set becomes `other`, so that a bug cannot make a new series a message.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from threading import Thread
from typing import Final, Literal, TypeAlias, get_args
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, start_http_server

from shared import reasons
from shared.message import UnavailableReason
from shared.outcome import DISPOSITIONS, STAGES, WAITS, Stage

Process: TypeAlias = Literal["ingest", "keeper", "admission", "engagement", "judge", "quotes", "dispatch", "delivery"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
MAX_ACCOUNTS: Final = 1000
"""Beyond so many accounts the label `account` stays empty and the channel speaks for all (operations.md, Metrics)."""

_INGEST: Final = frozenset[Process]({"ingest"})
_KEEPER: Final = frozenset[Process]({"keeper"})
_WORKERS: Final = frozenset[Process](STAGES)
_STEPS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_END_TO_END: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
_TURN: Final = (0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)

_OUTCOMES: Final = ("forward", "finish", "park", "retry", "dead")
_CALLS: Final = ("get_message", "verify", "send", "identity", "fetch", "acknowledge", "poll")
_CLOSED: Final[Mapping[str, tuple[str, ...]]] = {
    "stage": STAGES,
    "queue": STAGES,
    "outcome": _OUTCOMES,
    "disposition": DISPOSITIONS,
    "why": WAITS,
    "kind": ("message", "edit", "ignore", "handshake"),
    "call": _CALLS,
    "status": ("2xx", "4xx", "429", "5xx", "error"),
    "source": ("payload", "index", "history", "lookup"),
    "lane": ("owner", "private", "group"),
}
"""The values of a label wherever it appears; `reason` and `result` depend on the metric, `channel` and `harness` on the
configuration."""


@dataclass(frozen=True, slots=True)
class Declared:
    """One metric: its collector (not yet registered), its processes and the label sets that are its own."""

    collector: Counter | Gauge | Histogram
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    owners: frozenset[Process]
    sets: Mapping[str, tuple[str, ...]]
    help: str
    name: str

    def preset(self, known: Mapping[str, tuple[str, ...]]) -> None:
        """Make every series whose label values are all known, with the value 0."""
        sets = [self.sets.get(label) or _CLOSED.get(label) or known.get(label, ()) for label in self.labels]
        if self.labels:
            for values in product(*sets):
                self.collector.labels(*values)


DECLARED: Final[list[Declared]] = []
REGISTRY: Final = CollectorRegistry(auto_describe=False)
_registered: Final = set[str]()


def _note(
    collector: Counter | Gauge | Histogram,
    kind: Literal["counter", "gauge", "histogram"],
    name: str,
    labels: tuple[str, ...],
    owners: frozenset[Process],
    text: str,
    sets: Mapping[str, tuple[str, ...]],
) -> None:
    DECLARED.append(Declared(collector, kind, labels, owners, sets, text, f"millstream_{name}"))


def _counter(
    name: str, labels: tuple[str, ...], owners: frozenset[Process], text: str, **sets: tuple[str, ...]
) -> Counter:
    made = Counter(name, text, labels, namespace="millstream", registry=None)
    _note(made, "counter", name, labels, owners, text, sets)
    return made


def _gauge(name: str, labels: tuple[str, ...], owners: frozenset[Process], text: str) -> Gauge:
    made = Gauge(name, text, labels, namespace="millstream", registry=None)
    _note(made, "gauge", name, labels, owners, text, {})
    return made


def _histogram(
    name: str, labels: tuple[str, ...], owners: frozenset[Process], text: str, buckets: tuple[float, ...]
) -> Histogram:
    made = Histogram(name, text, labels, namespace="millstream", registry=None, buckets=buckets)
    _note(made, "histogram", name, labels, owners, text, {})
    return made


# --- ingest
events_received = _counter(
    "events_received_total", ("channel", "kind"), _INGEST,
    "Events that platforms sent and ingest took; a channel that stands still while people write has lost its webhook "
    "or its connector.",
)  # fmt: skip
events_rejected = _counter(
    "events_rejected_total", ("channel", "reason"), _INGEST,
    "Events refused at the edge; bad_signature: compare the account's secret with the platform's, full or overloaded: "
    "add workers or memory, malformed or too_large: see the log.",
    reason=("bad_signature", "malformed", "too_large", "overloaded", "full"),
)  # fmt: skip
connector_up = _gauge(
    "connector_up", ("channel", "account"), _INGEST,
    "1 while the process that holds an account's lease has its long poll or socket open; at 0 the log's "
    "connector_state says what is in the way.",
)  # fmt: skip
connector_last_inbound = _gauge(
    "connector_last_inbound_timestamp_seconds", ("channel", "account"), _INGEST,
    "Unix time of the last event that a connector brought; if it is old on a busy account, check that the platform "
    "still sends to this bot.",
)  # fmt: skip

# --- workers
stage_messages = _counter(
    "stage_messages_total", ("stage", "outcome"), _WORKERS,
    "What a stage decided, message by message; much retry or dead means that the other side of that stage fails.",
)  # fmt: skip
dispositions = _counter(
    "dispositions_total", ("channel", "disposition"), _WORKERS | _KEEPER,
    "Messages that ended, by their one disposition; dead ones wait in `millstream dead list`.",
)  # fmt: skip
retries = _counter(
    "retries_total", ("stage", "reason"), _WORKERS,
    "Tries that failed and will be made again; a rise names the service that is in trouble, nothing is lost yet.",
    reason=(*sorted(reasons.LATER), "other"),
)  # fmt: skip
dead_letters = _counter(
    "dead_letters_total", ("stage", "reason"), _WORKERS | _KEEPER,
    "Messages given up and kept; read the newest with `millstream dead show`, cure the cause, then replay.",
    reason=(*sorted(reasons.DEAD), "other"),
)  # fmt: skip
stage_duration = _histogram(
    "stage_duration_seconds", ("stage",), _WORKERS,
    "Time a stage worked on a message or batch; if it grows, look at what that stage calls.", _STEPS,
)  # fmt: skip
queue_wait = _histogram(
    "queue_wait_seconds", ("stage",), _WORKERS,
    "Time between a message's entry into a stage set and its start; if it grows, add workers of that stage.", _STEPS,
)  # fmt: skip
end_to_end = _histogram(
    "end_to_end_seconds", ("channel",), frozenset[Process]({"delivery"}),
    "Time from receipt to the platform's acceptance of the answer; find the slow part in queue_wait and turn_duration.",
    _END_TO_END,
)  # fmt: skip
turns_in_progress = _gauge(
    "turns_in_progress", (), frozenset[Process]({"dispatch"}),
    "Turns that the harness is working on; when it stays at harness.concurrency, raise that or add backends.",
)  # fmt: skip
turn_duration = _histogram(
    "turn_duration_seconds", ("harness",), frozenset[Process]({"dispatch"}),
    "Time the harness took for one turn; near timeout_s turns die, so make the backend faster or the limit longer.",
    _TURN,
)  # fmt: skip
quote_resolutions = _counter(
    "quote_resolutions_total", ("channel", "source", "result"), frozenset[Process]({"quotes"}),
    "How quoted texts were found, or why not; permission-denied: give the bot the scope to read its chats.",
    result=("resolved", *get_args(UnavailableReason)),
)  # fmt: skip
gate_decisions = _counter(
    "gate_decisions_total", ("lane", "reason"), frozenset[Process]({"engagement"}),
    "Why the gate answered or kept quiet; `millstream gate explain` tells the same of one text.",
    reason=(*sorted(reasons.GATE), "other"),
)  # fmt: skip
channel_requests = _counter(
    "channel_requests_total", ("channel", "call", "status"), _WORKERS | _INGEST,
    "Requests to a platform; 4xx: token or permission, 5xx and error: the platform or the way to it is in trouble.",
)  # fmt: skip
channel_request_duration = _histogram(
    "channel_request_duration_seconds", ("channel", "call"), _WORKERS | _INGEST,
    "Time a platform took to answer, long polls included; slow sends hold up the lanes of that account.", _STEPS,
)  # fmt: skip
channel_rate_limited = _counter(
    "channel_rate_limited_total", ("channel", "call"), _WORKERS | _INGEST,
    "Answers 429; they are obeyed, but a steady rise means more traffic than the platform allows this bot.",
)  # fmt: skip
replays = _counter(
    "replays_total", ("stage", "result"), _WORKERS | _KEEPER,
    "Dead letters that were replayed, by what came of it; again-dead means that the cause is still there.",
    result=("replayed", "refused", "again-dead", "failed"),
)  # fmt: skip
lane_passed_over = _counter(
    "lane_passed_over_total", ("stage",), _WORKERS | _KEEPER,
    "Messages that were overtaken because they were not ready within order_wait_s; find the slow stage first.",
)  # fmt: skip
takeovers = _counter(
    "takeovers_total", ("stage",), _WORKERS | _KEEPER,
    "Claims and leases that ran out and were taken over; workers die or hang, see their logs and memory limits.",
)  # fmt: skip
media_fetch = _counter(
    "media_fetch_total", ("channel", "result"), frozenset[Process]({"quotes"}),
    "Attachments fetched for a turn; failed: the platform's file host, refused or too-large: the limits of [media].",
    result=("fetched", "refused", "too-large", "failed"),
)  # fmt: skip

# --- keeper
reconciled = _counter(
    "reconciled_total", ("stage",), _KEEPER,
    "Wake-ups pushed again because the first one was lost; a few after a crash are normal, a steady stream is not.",
)  # fmt: skip
queue_depth = _gauge(
    "queue_depth", ("stage",), _KEEPER,
    "Messages in a stage set, those in progress included; when it grows, add workers of that stage.",
)  # fmt: skip
queue_oldest = _gauge(
    "queue_oldest_timestamp_seconds", ("stage",), _KEEPER,
    "Unix time at which the oldest message of a stage set entered it, 0 when it is empty; old means too few workers.",
)  # fmt: skip
broker_depth = _gauge(
    "broker_depth", ("queue",), _KEEPER,
    "Wake-ups in Celery's list of a queue; above the stage set's depth for long means that workers do not consume.",
)  # fmt: skip
due_depth = _gauge(
    "due_depth", ("stage",), _KEEPER,
    "Messages that wait for a time (retries, rate limits), by the stage they go back to; see retries_total for why.",
)  # fmt: skip
lane_depth = _gauge(
    "lane_depth", (), _KEEPER,
    "Messages that wait for an earlier turn of their conversation; many in few lanes: slow turns, else too few slots.",
)  # fmt: skip
lane_oldest = _gauge(
    "lane_oldest_timestamp_seconds", (), _KEEPER,
    "Unix time since when the longest waiting message stands in its lane, 0 when none does; old: trace that message.",
)  # fmt: skip
parked_depth = _gauge(
    "parked_depth", ("why",), _KEEPER,
    "Messages that wait for something other than time; breaker: the harness is down, pause: `millstream resume`.",
)  # fmt: skip
dead_letter_depth = _gauge(
    "dead_letter_depth", ("stage",), _KEEPER,
    "Dead letters that wait for an operator; `millstream dead plan` says what can be replayed.",
)  # fmt: skip
dead_letter_oldest = _gauge(
    "dead_letter_oldest_timestamp_seconds", ("stage",), _KEEPER,
    "Unix time at which the oldest waiting dead letter died, 0 when there is none; old ones fall out of retention.",
)  # fmt: skip
outbound_index_entries = _gauge(
    "outbound_index_entries", ("account",), _KEEPER,
    "Entries of an account's outbound index; at its cap the oldest quotes can no longer be found.",
)  # fmt: skip
media_bytes = _gauge(
    "media_bytes", (), _KEEPER,
    "Bytes of stored attachments; if it nears the server's memory, lower media.ttl_s or use store = dir.",
)  # fmt: skip
canary_last_seen = _gauge(
    "canary_last_seen_timestamp_seconds", (), _KEEPER,
    "Unix time at which the last canary went through the whole pipeline; if it is old, messages do not come through.",
)  # fmt: skip
build_info = _gauge(
    "build_info", ("version",), _KEEPER,
    "Always 1, the label names the running version; two versions at once for long means an unfinished roll-out.",
)  # fmt: skip


def start(processes: Iterable[Process], channels: Iterable[str], harnesses: Iterable[str] = ("default",)) -> None:
    """Expose what `processes` own, each closed series at 0. Calling it again adds to what is there."""
    known = {"channel": tuple(sorted(channels)), "harness": tuple(sorted(harnesses))}
    wanted = frozenset(processes)
    for metric in DECLARED:
        if metric.owners.isdisjoint(wanted):
            continue
        if metric.name not in _registered:
            REGISTRY.register(metric.collector)
            _registered.add(metric.name)
        metric.preset(known)


def render() -> bytes:
    """All registered metrics in Prometheus' text format (`CONTENT_TYPE`)."""
    return generate_latest(REGISTRY)


def serve(port: int, host: str = "127.0.0.1") -> tuple[WSGIServer, Thread]:
    """Answer `/metrics` from a daemon thread; `server.shutdown()` ends it. Raises OSError when the port is taken."""
    return start_http_server(port, host, REGISTRY)


def closed(metric: Counter, label: str, value: str) -> str:
    """`value` when it is one of the metric's closed values of `label`, else `other`."""
    return value if value in _sets(metric)[label] else "other"


@cache
def _sets(metric: Counter) -> Mapping[str, tuple[str, ...]]:
    return next(d.sets for d in DECLARED if d.collector is metric)


@cache
def counter(metric: Counter, *labels: str) -> Counter:
    """One series of a counter. Kept, since every message asks for several; the label sets are closed."""
    return metric.labels(*labels)


@cache
def histogram(metric: Histogram, *labels: str) -> Histogram:
    """One series of a histogram, as `counter`."""
    return metric.labels(*labels)


def count_dead(stage: Stage, reason: str) -> None:
    """One more dead letter."""
    dead_letters.labels(stage, closed(dead_letters, "reason", reason)).inc()


def count_retry(stage: Stage, reason: str) -> None:
    """One more try that will be made again."""
    retries.labels(stage, closed(retries, "reason", reason)).inc()


def count_gate(lane: Literal["owner", "private", "group"], reason: str) -> None:
    """One more decision of the gate."""
    counter(gate_decisions, lane, closed(gate_decisions, "reason", reason)).inc()


class ConnectorGauges:
    """Sets `connector_up` and `connector_last_inbound` for all connectors of this process.

    Beyond `MAX_ACCOUNTS` accounts the label is empty: a channel is up when all its connectors are, and its last event
    is the newest of any.
    """

    def __init__(self) -> None:
        self._up = dict[tuple[str, str], bool]()
        self._coarse = False

    def set(self, channel: str, account: str, up: bool) -> None:
        """`account`'s connector is open, or should be and is not."""
        self._up[channel, account] = up
        if not self._coarse and len(self._up) > MAX_ACCOUNTS:
            self._coarse = True
            connector_up.clear()
            connector_last_inbound.clear()
        if self._coarse:
            connector_up.labels(channel, "").set(all(v for (name, _), v in self._up.items() if name == channel))
        else:
            connector_up.labels(channel, account).set(up)

    def forget(self, channel: str, account: str) -> None:
        """Another process has the connector now, or nobody wants it: say nothing about it."""
        if self._up.pop((channel, account), None) is not None and not self._coarse:
            connector_up.remove(channel, account)

    def inbound(self, channel: str, account: str, at_ms: int) -> None:
        """An event came at `at_ms`, Unix milliseconds."""
        connector_last_inbound.labels(channel, "" if self._coarse else account).set(at_ms / 1000)


connectors: Final = ConnectorGauges()


def request_hook(channel: str) -> Callable[[str, str, float], None]:
    """What a channel's HTTP calls after each request: `(call, status, seconds)`.

    `status` is an HTTP status or its class (`2xx`, `429`, …); anything else counts as `error`, but `cancelled` (we gave
    the request up ourselves) does not count at all.
    """

    def note(call: str, status: str, seconds: float) -> None:
        if status == "cancelled":
            return
        named = call if call in _CALLS else "other"
        counted = _status_class(status)
        channel_requests.labels(channel, named, counted).inc()
        channel_request_duration.labels(channel, named).observe(seconds)
        if counted == "429":
            channel_rate_limited.labels(channel, named).inc()

    return note


def _status_class(status: str) -> str:
    if status in _CLOSED["status"]:
        return status
    # A redirect is never followed: for the caller it is as definite a no as a 4xx.
    return {"2": "2xx", "3": "4xx", "4": "4xx", "5": "5xx"}.get(status[:1], "error") if status.isdigit() else "error"
