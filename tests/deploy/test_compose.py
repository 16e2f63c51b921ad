"""docker-compose.yml, read as Compose reads it: what every service must have, and one service a stage."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from shared.outcome import STAGES
from shared.settings import HarnessSettings, MetricsSettings, from_mapping

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = ["ingest", *STAGES, "keeper"]
CALLING_OUT = {"ingest", "judge", "quotes", "dispatch", "delivery"}
"""Connectors, models, lookups, harnesses and sends leave the machine; nothing else needs to (operations.md)."""


def seconds(duration: str) -> int:
    assert duration.endswith("s")
    return int(duration.removesuffix("s"))


def test_there_is_the_server_ingest_a_service_a_stage_the_keeper_and_prometheus() -> None:
    assert set(SERVICES) == {"redis", *OURS, "prometheus"}


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_hardened_and_checked(name: str) -> None:
    service = SERVICES[name]
    assert service["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}
    assert {"interval", "timeout", "retries", "start_period"} <= set(service["healthcheck"])
    assert service["init"] is True
    assert service["read_only"] is True
    assert any(mount.split(":")[0] == "/tmp" for mount in service["tmpfs"])
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert "privileged" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "stop_grace_period" in service
    assert "latest" not in service["image"]
    assert ":" in service["image"]


@pytest.mark.parametrize("name", OURS)
def test_every_process_runs_its_command_after_the_server_is_healthy(name: str) -> None:
    service = SERVICES[name]
    assert service["command"] == (["worker", name] if name in STAGES else [name])
    assert service["depends_on"] == {"redis": {"condition": "service_healthy"}}
    assert service["build"] == {"context": ".", "dockerfile": "deploy/docker/Dockerfile"}
    assert service["image"] == SERVICES["ingest"]["image"]
    assert "./millstream.toml:/app/millstream.toml:ro" in service["volumes"]


@pytest.mark.parametrize("name", SERVICES)
def test_every_dependency_waits_for_health(name: str) -> None:
    for condition in SERVICES[name].get("depends_on", {}).values():
        assert condition["condition"] == "service_healthy"


@pytest.mark.parametrize("name", OURS)
def test_grace_lets_a_turn_end_and_nobody_else_linger(name: str) -> None:
    wanted = HarnessSettings().timeout_s + 30 if name == "dispatch" else 30
    assert seconds(SERVICES[name]["stop_grace_period"]) == wanted


@pytest.mark.parametrize("name", OURS)
def test_a_health_check_asks_a_port_that_the_process_serves(name: str) -> None:
    test = " ".join(SERVICES[name]["healthcheck"]["test"])
    if name == "ingest":
        assert f"127.0.0.1:{from_mapping({}).ingest.port}/readyz" in test
    else:
        assert f"127.0.0.1:{MetricsSettings().port}/metrics" in test
    assert "celery" not in test


@pytest.mark.parametrize("name", OURS)
def test_secrets_come_as_files_and_ports_are_open_inside(name: str) -> None:
    service = SERVICES[name]
    assert {"source": "redis_url", "target": "MILLSTREAM_REDIS__URL"} in service["secrets"]
    assert service["environment"]["MILLSTREAM_SECRETS_DIR"] == "/run/secrets"
    assert service["environment"]["MILLSTREAM_INGEST__HOST"] == "0.0.0.0"
    assert not [key for key in service["environment"] if any(word in key for word in ("URL", "TOKEN", "PASSWORD"))]


def test_secret_files_lie_where_git_and_the_image_do_not_look() -> None:
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert ".millstream/" in ignored
    assert set(COMPOSE["secrets"]) == {"redis_password", "redis_url"}
    for secret in COMPOSE["secrets"].values():
        assert secret["file"].startswith(".millstream/")
    assert (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()[1] == "*"


def test_the_server_keeps_what_it_took_and_refuses_before_it_forgets() -> None:
    command = " ".join(SERVICES["redis"]["command"])
    assert "--appendonly yes" in command
    assert "--appendfsync everysec" in command
    assert "--maxmemory-policy noeviction" in command
    assert "requirepass" in command
    assert "redis_password" in command
    assert "ports" not in SERVICES["redis"]
    assert "redis-data:/data" in SERVICES["redis"]["volumes"]


def test_only_what_calls_out_may_leave_the_inner_network() -> None:
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    for name in ["redis", *OURS]:
        assert ("outside" in SERVICES[name]["networks"]) == (name in CALLING_OUT), name
        assert "inside" in SERVICES[name]["networks"]


def test_what_is_published_is_published_on_loopback() -> None:
    for name, service in SERVICES.items():
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), name


def test_prometheus_comes_with_its_profile_only() -> None:
    assert SERVICES["prometheus"]["profiles"] == ["observability"]
    assert [name for name, service in SERVICES.items() if "profiles" in service] == ["prometheus"]


def test_prometheus_scrapes_every_process() -> None:
    config = yaml.safe_load((ROOT / "deploy/monitoring/prometheus.yml").read_text(encoding="utf-8"))
    found = {
        (name, source["port"])
        for job in config["scrape_configs"]
        for source in job["dns_sd_configs"]
        for name in source["names"]
    }
    assert found == {(name, 8080 if name == "ingest" else 9100) for name in OURS}
