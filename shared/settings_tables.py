"""The tables of `millstream.toml` that are not accounts or routes.

Every key, default and unit is that of the configuration contract (`docs/configuration.md` lists them with their
meaning). Names that end in `_s` are seconds, `_ms` milliseconds, `_days` days. All models are frozen and refuse
unknown keys. A pydantic `ValidationError` leaves this package only as `ConfigurationError`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit, urlunsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, SecretStr

MASK = "**********"

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
"""Account ids and harness names: they appear in URLs, Redis keys and metric labels."""


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _word(value: str) -> str:
    if not value.strip():
        raise ValueError("an empty word would be found in every text: remove it")
    return value


def masked_url(url: str) -> str:
    """`url` with its user name and password, if any, replaced by a mask; anything else unchanged."""
    if "@" not in url:
        return url
    try:
        parts = urlsplit(url)
    except ValueError:
        return MASK
    if "@" not in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc=f"{MASK}@{parts.netloc.rpartition('@')[2]}"))


def _harness_name(value: str) -> str:
    if value == "default":
        raise ValueError("is the name of [harness] itself: choose another name")
    return value


Duration = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Span = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Port = Annotated[int, Field(ge=1, le=65535)]
Hour = Annotated[int, Field(ge=0, le=23)]
Ratio = Annotated[float, Field(ge=0, le=1)]
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
HarnessName = Annotated[Name, AfterValidator(_harness_name)]
Word = Annotated[str, AfterValidator(_word)]
Url = Annotated[str, PlainSerializer(masked_url, when_used="json")]
"""An address that may carry a password: clear as an attribute, masked in `repr` and JSON."""
Language = Literal["auto", "zh", "en"]
NO_SECRET = SecretStr("")


class Table(BaseModel):
    """A frozen table of the configuration; unknown keys are refused, addresses are masked in `repr`."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, validate_default=False)

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        for key, value in super().__repr_args__():
            yield key, masked_url(value) if isinstance(value, str) else value


class RedisSettings(Table):
    """`[redis]`: the server; an empty `url` starts the embedded one. `prefix` begins every key."""

    url: Url = ""
    prefix: Annotated[str, Field(min_length=1)] = "ms:"


class IngestSettings(Table):
    """`[ingest]`: the edge. Depths count messages."""

    host: str = "127.0.0.1"
    port: Port = 8080
    max_body_bytes: Positive = 1_048_576
    max_queue_depth: Positive = 100_000
    max_account_depth: Positive = 10_000
    batch_max: Positive = 64
    batch_linger_ms: Duration = 5


class RetrySettings(Table):
    """`pipeline.retry`: tries in all, first and longest wait in seconds (exponential, full jitter)."""

    attempts: Positive = 5
    base_s: Duration = 1
    max_s: Duration = 300


class PipelineSettings(Table):
    """`[pipeline]`: how messages move."""

    order_wait_s: Duration = 10
    lane_max: Positive = 50
    lease_s: Span = 30
    reconcile_s: Span = 2
    claim_s: Span = 3
    partitions: Positive = 64
    drain_s: Duration = 25
    interaction_timeout_s: Duration = 600
    max_takeovers: Count = 5
    newer_version_s: Duration = 600
    account_concurrency: Positive = 8
    retry: RetrySettings = RetrySettings()
    decision_days: Duration = 7
    frozen_days: Duration = 7


class BreakerSettings(Table):
    """`harness.breaker`: transient failures in a row that open it, seconds until one turn probes."""

    failures: Positive = 3
    open_s: Duration = 15


class HarnessSettings(Table):
    """`[harness]` and every `[harnesses.NAME]`."""

    kind: Literal["echo", "openai", "http"] = "echo"
    url: Url = ""
    model: str = ""
    api_key: SecretStr = NO_SECRET
    secret: SecretStr = NO_SECRET
    timeout_s: Duration = 300
    idempotent: bool = False
    concurrency: Positive = 32
    session_messages: Count = 200
    session_tokens: Count = 0
    session_idle_s: Duration = 0
    context_messages: Count = 20
    failure_notice: str = "auto"
    system: str = ""
    breaker: BreakerSettings = BreakerSettings()
    give_up_s: Duration = 3600


class JudgeSettings(Table):
    """`[judge]`: the light model of the gate. It is given `preferences`, never the persona's body."""

    kind: Literal["none", "openai", "http"] = "none"
    url: Url = ""
    model: str = ""
    api_key: SecretStr = NO_SECRET
    timeout_s: Duration = 5
    character: str = ""
    preferences: str = ""
    context_messages: Count = 20


class PresenceSettings(Table):
    """`[presence]`: the public presence block; empty: the built-in one."""

    text: str = ""


class IndexSettings(Table):
    """`[index]`: the outbound index. `max_chars` counts code points; exactly `max_age_days` old is kept."""

    max_entries: Positive = 200
    max_age_days: Duration = 30
    max_chars: Positive = 8000
    window_s: Duration = 15


class LookbackSettings(Table):
    """`[lookback]`: how far the bound session's history is searched for a quoted reply."""

    pages: Count = 3
    page_size: Positive = 100
    budget_s: Duration = 5
    window_s: Duration = 15


class MediaSettings(Table):
    """`[media]`: files of the current message. `max_bytes` counts all of them together."""

    store: Literal["redis", "dir"] = "redis"
    max_files: Count = 10
    max_bytes: Count = 20_971_520
    budget_s: Duration = 20
    ttl_s: Duration = 3600


class SttSettings(Table):
    """`[stt]`: an OpenAI-compatible speech-to-text endpoint; empty: none."""

    url: Url = ""
    model: str = ""
    api_key: SecretStr = NO_SECRET


class NoticesSettings(Table):
    """`[notices]`: `auto` is the built-in sentence, empty is silence."""

    queued: str = "auto"


class AdminSettings(Table):
    """`[admin]`: HTTP API and console; closed while no token is set."""

    host: str = "127.0.0.1"
    port: Port = 8090
    viewer_token: SecretStr = NO_SECRET
    operator_token: SecretStr = NO_SECRET


class StorageSettings(Table):
    """`[storage]`: path of the key file; empty: not encrypted at rest."""

    encryption_key_file: str = ""


class MetricsSettings(Table):
    """`[metrics]`: the port of `/metrics`."""

    port: Port = 9100


class LogSettings(Table):
    """`[log]`."""

    format: Literal["auto", "console", "json"] = "auto"
    level: Annotated[Literal["debug", "info", "warning", "error", "critical"], BeforeValidator(_lower)] = "info"


class DeadLetterSettings(Table):
    """`[dead_letters]`: `max_entries` is per stage; the storm keys are those of the alarm on many at once."""

    max_entries: Positive = 10_000
    max_age_days: Duration = 30
    max_replays: Count = 5
    storm_ratio: Ratio = 0.5
    storm_min: Count = 50
