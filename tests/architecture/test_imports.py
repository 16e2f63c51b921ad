"""The import contracts of .importlinter hold, and would notice a breach."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from source_tree import PACKAGES, ROOT, python_files

LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True, no_logo=True))"

BREACHES = {
    "shared knows workers": ("shared/envelope.py", "import workers.pipeline"),
    "shared knows ingest": ("shared/envelope.py", "import ingest.app"),
    "ingest knows workers": ("ingest/app.py", "import workers.runner"),
    "workers know ingest": ("workers/runner.py", "import ingest.app"),
    "a stage knows another stage": ("workers/quotes/facts.py", "import workers.dispatch.policy"),
    "a stage knows the runner": ("workers/delivery/effects.py", "import workers.runner"),
    "what the stages share knows a stage": ("workers/context.py", "import workers.quotes.facts"),
    "a stage knows the dead letters": ("workers/delivery/effects.py", "import workers.deadletters"),
    "the map knows the runner": ("workers/pipeline.py", "import workers.runner"),
    "something imports the command line": ("workers/runner.py", "import workers.ops"),
    "a policy uses the server": ("workers/admission/policy.py", "import redis"),
    "a policy asks for the time": ("workers/dispatch/policy.py", "import time"),
    "a policy draws": ("workers/engagement/policy.py", "import random"),
    "a policy logs, one file removed": ("workers/judge/policy.py", "import shared.logging"),
    "a normaliser calls out": ("shared/channels/telegram/inbound.py", "import httpx"),
    "an envelope reads the environment": ("shared/envelope.py", "import os"),
}


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", LINT], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def skeleton(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository's modules, each empty but for what a breach may lead through."""
    folder = tmp_path_factory.mktemp("skeleton")
    shutil.copy(ROOT / ".importlinter", folder)
    for path in python_files(*PACKAGES):
        copy = folder / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text("")
    (folder / "shared/logging.py").write_text("import structlog\n")
    return folder


def test_the_import_contracts_hold() -> None:
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


def test_an_empty_skeleton_keeps_the_contracts(skeleton: Path) -> None:
    result = lint(skeleton)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("breach", BREACHES)
def test_each_breach_is_noticed(skeleton: Path, breach: str) -> None:
    name, line = BREACHES[breach]
    module = skeleton / name
    assert module.exists(), f"{name} is not there"
    module.write_text(line + "\n")
    try:
        result = lint(skeleton)
    finally:
        module.write_text("")
    assert result.returncode == 1, result.stdout + result.stderr
    assert "BROKEN" in result.stdout
