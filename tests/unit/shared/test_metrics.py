"""The declarations equal operations.md's table, `docs/metrics.md` equals the declarations, and counting counts."""

import http.client
import re
import subprocess
import sys
from pathlib import Path

import pytest

from shared import metrics
from shared.outcome import STAGES

ROOT = Path(__file__).parents[3]

# operations.md, Metrics: names, kinds and labels.
TABLE = {
    "events_received_total": ("counter", ("channel", "kind")),
    "events_rejected_total": ("counter", ("channel", "reason")),
    "stage_messages_total": ("counter", ("stage", "outcome")),
    "dispositions_total": ("counter", ("channel", "disposition")),
    "retries_total": ("counter", ("stage", "reason")),
    "dead_letters_total": ("counter", ("stage", "reason")),
    "reconciled_total": ("counter", ("stage",)),
    "stage_duration_seconds": ("histogram", ("stage",)),
    "queue_wait_seconds": ("histogram", ("stage",)),
    "end_to_end_seconds": ("histogram", ("channel",)),
    "turns_in_progress": ("gauge", ()),
    "turn_duration_seconds": ("histogram", ("harness",)),
    "quote_resolutions_total": ("counter", ("channel", "source", "result")),
    "gate_decisions_total": ("counter", ("lane", "reason")),
    "channel_requests_total": ("counter", ("channel", "call", "status")),
    "channel_request_duration_seconds": ("histogram", ("channel", "call")),
    "channel_rate_limited_total": ("counter", ("channel", "call")),
    "replays_total": ("counter", ("stage", "result")),
    "queue_depth": ("gauge", ("stage",)),
    "queue_oldest_timestamp_seconds": ("gauge", ("stage",)),
    "broker_depth": ("gauge", ("queue",)),
    "due_depth": ("gauge", ("stage",)),
    "lane_depth": ("gauge", ()),
    "lane_oldest_timestamp_seconds": ("gauge", ()),
    "parked_depth": ("gauge", ("why",)),
    "dead_letter_depth": ("gauge", ("stage",)),
    "dead_letter_oldest_timestamp_seconds": ("gauge", ("stage",)),
    "outbound_index_entries": ("gauge", ("account",)),
    "canary_last_seen_timestamp_seconds": ("gauge", ()),
    "build_info": ("gauge", ("version",)),
    "connector_up": ("gauge", ("channel", "account")),
    "connector_last_inbound_timestamp_seconds": ("gauge", ("channel", "account")),
    "lane_passed_over_total": ("counter", ("stage",)),
    "takeovers_total": ("counter", ("stage",)),
    "media_fetch_total": ("counter", ("channel", "result")),
    "media_bytes": ("gauge", ()),
}


def value(name: str, **labels: str) -> float:
    found = metrics.REGISTRY.get_sample_value(f"millstream_{name}", labels)
    return 0.0 if found is None else found


@pytest.fixture(autouse=True)
def _started() -> None:
    metrics.start(("ingest", "keeper", *STAGES), ("mock", "slack", "telegram"))


def test_every_row_of_the_table_is_declared_and_nothing_else() -> None:
    declared = {d.name.removeprefix("millstream_"): (d.kind, d.labels) for d in metrics.DECLARED}
    assert declared == TABLE


def test_names_are_base_units() -> None:
    for metric in metrics.DECLARED:
        assert metric.name.startswith("millstream_")
        assert (metric.kind == "counter") == metric.name.endswith("_total")
        assert not re.search(r"_(ms|milliseconds|minutes|kb)\b", metric.name)


def test_help_is_a_sentence_that_says_what_to_do() -> None:
    for metric in metrics.DECLARED:
        assert metric.help[0].isupper() or metric.help[0].isdigit(), metric.name
        assert metric.help.endswith("."), metric.name
        assert len(metric.help) > 60, metric.name


def test_the_document_equals_the_declarations() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*?) \| (.*) \|$", (ROOT / "docs/metrics.md").read_text(), re.MULTILINE
    )
    expected = [
        (d.name, d.kind, ", ".join(d.labels), ", ".join(sorted(d.owners)), d.help)
        for d in sorted(metrics.DECLARED, key=lambda d: d.name)
    ]
    assert rows == expected


def test_closed_sets_start_at_zero() -> None:
    text = metrics.render().decode()
    for line in (
        'millstream_events_rejected_total{channel="slack",reason="too_large"} 0.0',
        'millstream_stage_messages_total{outcome="dead",stage="delivery"} 0.0',
        'millstream_dispositions_total{channel="mock",disposition="joined"} 0.0',
        'millstream_dead_letters_total{reason="crash-loop",stage="dispatch"} 0.0',
        'millstream_parked_depth{why="breaker"} 0.0',
    ):
        assert line.rsplit(" ", 1)[0] in text


def test_a_worker_never_shows_the_keepers_gauges() -> None:
    script = "from shared import metrics; metrics.start(['dispatch'], ['mock']); print(metrics.render().decode())"
    text = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "millstream_turns_in_progress 0.0" in text
    for name in ("canary_last_seen", "queue_depth", "lane_oldest", "connector_up", "build_info", "media_bytes"):
        assert f"millstream_{name}" not in text


def test_nothing_names_a_person_or_a_machine() -> None:
    allowed = {
        "channel", "kind", "reason", "stage", "outcome", "disposition", "harness", "source", "result", "lane", "call",
        "status", "queue", "why", "account", "version",
    }  # fmt: skip
    assert {label for d in metrics.DECLARED for label in d.labels} == allowed
    with_account = {d.name.removeprefix("millstream_") for d in metrics.DECLARED if "account" in d.labels}
    assert with_account == {"connector_up", "connector_last_inbound_timestamp_seconds", "outbound_index_entries"}


def test_an_unknown_reason_counts_as_other() -> None:
    before = value("dead_letters_total", stage="judge", reason="other")
    metrics.count_dead("judge", "somebody's text")
    metrics.count_dead("judge", "crash-loop")
    assert value("dead_letters_total", stage="judge", reason="other") == before + 1
    assert "somebody" not in metrics.render().decode()


@pytest.mark.parametrize(
    ("status", "counted"),
    [
        ("200", "2xx"),
        ("2xx", "2xx"),
        ("302", "4xx"),
        ("404", "4xx"),
        ("429", "429"),
        ("503", "5xx"),
        ("unknown", "error"),
    ],
)
def test_request_hook_counts_by_class(status: str, counted: str) -> None:
    before = value("channel_requests_total", channel="slack", call="send", status=counted)
    limited = value("channel_rate_limited_total", channel="slack", call="send")
    metrics.request_hook("slack")("send", status, 0.2)
    assert value("channel_requests_total", channel="slack", call="send", status=counted) == before + 1
    assert value("channel_rate_limited_total", channel="slack", call="send") == limited + (counted == "429")


def test_a_request_that_we_gave_up_is_not_counted() -> None:
    before = metrics.render()
    metrics.request_hook("slack")("poll", "cancelled", 3)
    assert metrics.render() == before


def test_connector_gauges_by_account_then_by_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    gauges = metrics.ConnectorGauges()
    monkeypatch.setattr(metrics, "MAX_ACCOUNTS", 2)
    gauges.set("telegram", "a", True)
    gauges.set("telegram", "b", False)
    assert value("connector_up", channel="telegram", account="a") == 1
    assert value("connector_up", channel="telegram", account="b") == 0
    gauges.forget("telegram", "b")
    assert 'account="b"' not in metrics.render().decode()
    gauges.set("telegram", "b", True)
    gauges.set("telegram", "c", True)
    assert value("connector_up", channel="telegram", account="") == 1
    gauges.set("telegram", "a", False)
    assert value("connector_up", channel="telegram", account="") == 0
    assert 'account="a"' not in metrics.render().decode()
    gauges.inbound("telegram", "c", 1_790_000_101_500)
    assert value("connector_last_inbound_timestamp_seconds", channel="telegram", account="") == 1_790_000_101.5
    metrics.connector_up.clear()
    metrics.connector_last_inbound.clear()


def test_serve_answers_on_loopback() -> None:
    server, thread = metrics.serve(0)
    try:
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=5)
        connection.request("GET", "/metrics")
        body = connection.getresponse().read()
        connection.close()
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
    assert b"millstream_events_received_total" in body
