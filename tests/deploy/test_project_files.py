"""Makefile, constraints and the check script: what a fresh clone starts from."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


# Under `make test` a make would take itself for a part of that one, and say so.
PLAIN = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def required() -> set[str]:
    """Every package that pyproject.toml asks for, in whatever extra."""
    lists = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    return {normal(re.split(r"[\[<>=!~; ]", line, maxsplit=1)[0]) for lines in lists for line in lines}


def test_constraints_name_one_exact_version_of_every_dependency() -> None:
    pinned: set[str] = set()
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            match = re.fullmatch(r"([A-Za-z0-9._-]+)==([^\s;]+)( ; .+)?", line)
            assert match, f"not an exact version: {line}"
            pinned.add(normal(match[1]))
    assert required() - pinned == set()


@pytest.mark.parametrize("target", ["help", "demo", "test", "lint", "bench", "clean"])
def test_make_help_lists_every_target(target: str) -> None:
    text = subprocess.run(["make", "help"], cwd=ROOT, env=PLAIN, check=True, capture_output=True, text=True).stdout
    assert re.search(rf"^  make {target} ", text, re.MULTILINE)


def test_help_is_what_make_shows_without_a_target() -> None:
    plain = subprocess.run(["make"], cwd=ROOT, env=PLAIN, check=True, capture_output=True, text=True).stdout
    assert plain.startswith("Millstream. Targets:")


def test_make_says_what_it_needs_where_no_python_fits(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "cat", "cksum", "head", "touch"):
        found = [Path(folder) / name for folder in ("/bin", "/usr/bin") if (Path(folder) / name).exists()]
        (tools / name).symlink_to(found[0])
    old = tools / "python3"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.2\nexit 1\n')
    old.chmod(0o755)
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    make = next(path for folder in ("/usr/bin", "/bin", "/usr/local/bin") if (path := Path(folder) / "make").exists())
    result = subprocess.run(
        [str(make), "test"], cwd=tmp_path, env={"PATH": str(tools)}, capture_output=True, text=True, check=False
    )
    assert result.returncode != 0
    assert 'needs Python 3.11, 3.12 or 3.13, and none was found: "python3" is Python 3.9.2.' in result.stderr
    assert not (tmp_path / ".venv").exists()


def test_the_check_script_stops_at_the_first_failure() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    text = script.read_text(encoding="utf-8")
    assert text.startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail" in text
    order = [text.index(f"make {target}\n") for target in ("install", "test", "lint", "demo")]
    assert order == sorted(order)


def test_make_secrets_makes_both_files_once(tmp_path: Path) -> None:
    script = tmp_path / "deploy" / "docker" / "make-secrets"
    script.parent.mkdir(parents=True)
    script.write_bytes((ROOT / "deploy/docker/make-secrets").read_bytes())
    subprocess.run(["sh", str(script)], check=True, capture_output=True)
    folder = tmp_path / ".millstream" / "secrets"
    password = (folder / "redis_password").read_text().strip()
    assert re.fullmatch(r"[0-9a-f]{48}", password)
    assert (folder / "redis_url").read_text().strip() == f"redis://:{password}@redis:6379/0"
    assert folder.stat().st_mode & 0o777 == 0o700
    again = subprocess.run(["sh", str(script)], check=True, capture_output=True, text=True).stdout
    assert "nothing changed" in again
    assert (folder / "redis_password").read_text().strip() == password
