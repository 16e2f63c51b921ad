"""The repository as the architecture tests see it: its files and their syntax trees."""

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("ingest", "workers", "shared")
STAGES = ("admission", "engagement", "judge", "quotes", "dispatch", "delivery")
"""The stages of design.md, section 1, in their order."""


def python_files(*folders: str) -> list[Path]:
    """The Python files below these folders of the repository."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def lua_files() -> list[Path]:
    """The scripts that run inside the server."""
    return sorted((ROOT / "shared").rglob("*.lua"))


def name_of(path: Path) -> str:
    """The path as the repository writes it, for messages and for the ids of parametrised tests."""
    return path.relative_to(ROOT).as_posix()


def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a Python file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def own_files() -> list[Path]:
    """Every file of the repository that git tracks or would track."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [ROOT / name for name in sorted(set(listed.split("\0"))) if name and (ROOT / name).is_file()]


def calls(tree: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    """Every call below `tree`, with the last part of the called name (`client.send(…)` gives `send`)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                yield node, node.func.attr
            elif isinstance(node.func, ast.Name):
                yield node, node.func.id
