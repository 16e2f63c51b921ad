"""Running scenarios: each against a fresh database, its steps one after another, its expectations checked."""

import asyncio
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import structlog

from shared.channels import BUILT
from shared.redis.client import Redis, connect
from shared.redis.embedded import Embedded
from shared.settings import ConfigurationError, Settings, from_mapping, scenario_mapping
from workers.ops.scenario import format as scenario_format
from workers.ops.scenario.clock import ScenarioLoop
from workers.ops.scenario.expect import check
from workers.ops.scenario.model import Scenario
from workers.ops.scenario.report import selected
from workers.ops.scenario.result import ScenarioResult, StepResult
from workers.ops.scenario.scripted import with_credentials
from workers.ops.scenario.steps import Steps
from workers.ops.scenario.unbuilt import unbuilt
from workers.ops.scenario.world import Died, World


def run_paths(paths: Sequence[Path], select: str = "", jobs: int = 1) -> list[ScenarioResult]:
    """Run what lies under `paths`, in order. Raises ScenarioError when a file is malformed."""
    scenarios = selected(scenario_format.load(paths), select)
    if jobs > 1 and len(scenarios) > 1:
        shares = [scenarios[n::jobs] for n in range(jobs)]
        with ProcessPoolExecutor(jobs) as pool:
            done = list(pool.map(run_all, shares))
        return [done[n % jobs][n // jobs] for n in range(len(scenarios))]
    return run_all(scenarios)


def run_all(scenarios: Sequence[Scenario]) -> list[ScenarioResult]:
    """Run scenarios one after another on one embedded server of their own."""
    with tempfile.TemporaryDirectory() as folder, Embedded.start(Path(folder), durable=False) as server:
        client = connect(server.url)
        try:
            return [run_one(scenario, client, server.url) for scenario in scenarios]
        finally:
            client.close()


def run_one(scenario: Scenario, client: Redis, url: str) -> ScenarioResult:
    """Run one scenario on an empty database."""
    if missing := unbuilt(scenario, BUILT):
        return ScenarioResult(scenario, problem="; ".join(missing))
    try:
        config = scenario_mapping(with_credentials(scenario.config))
        settings = from_mapping({**config, "redis": {**config.get("redis", {}), "url": url}})
    except ConfigurationError as error:
        return _refused(scenario, str(error))
    if scenario.config_error:
        return ScenarioResult(scenario, problem="the configuration was expected to be refused and is not")
    client.flushdb()
    loop = ScenarioLoop()
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(_run(scenario, settings, client))
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _refused(scenario: Scenario, text: str) -> ScenarioResult:
    if not scenario.config_error:
        return ScenarioResult(scenario, problem=f"the configuration is refused: {text}")
    missing = [word for word in scenario.config_error if word not in text]
    return ScenarioResult(scenario, problem=f"the refusal lacks {missing}: {text}" if missing else "")


class Capture:
    """Log lines of a step."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def __call__(self, _logger: Any, method: str, event: Any) -> Any:
        self.lines.append({**event, "level": method})
        raise structlog.DropEvent


async def _run(scenario: Scenario, settings: Settings, client: Redis) -> ScenarioResult:
    before = structlog.get_config()
    capture = Capture()
    structlog.configure(processors=[capture], cache_logger_on_first_use=False)
    world = World(scenario, settings, client)
    steps = Steps(world, scenario, capture.lines)
    results: list[StepResult] = []
    try:
        for step in scenario.steps:
            capture.lines.clear()
            result = await steps.run(step)
            result.failures += check(step.expect, result)
            results.append(result)
    except Died as error:
        return ScenarioResult(scenario, tuple(results), problem=f"step {len(results) + 1}: {error}")
    finally:
        world.close()
        await asyncio.sleep(0)
        structlog.configure(**before)
    return ScenarioResult(scenario, tuple(results))
