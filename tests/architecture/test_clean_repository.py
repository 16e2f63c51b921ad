"""Nothing in the repository tells where it was made: no path of a machine, no package index, no name of a host."""

import os
import re
import socket
from pathlib import Path

from source_tree import ROOT, name_of, own_files

PLACES = re.compile(
    rb"""(?<![\w.~-])/(?:root|Users|home)/\w     # a person's folder
    | --(?:extra-)?index-url | --find-links      # where packages came from
    | \b[\w-]+\.(?:internal|corp|lan)\b""",
    re.VERBOSE,
)
HERE = Path(__file__)


def places_of_this_machine() -> set[bytes]:
    """What would betray this machine: its folders, its name, the package indexes that it was told of."""
    found = {str(ROOT)}
    if Path.home() not in (Path("/"), Path("/root")):
        found.add(str(Path.home()))
    host = socket.gethostname()
    if len(host) >= 6 and re.search(r"[\d-]", host):
        found.add(host)
    for name, value in os.environ.items():
        if name.startswith(("PIP_", "UV_", "NPM_CONFIG_")) and re.search(r"INDEX|LINKS|REGISTRY", name):
            found.update(part for part in re.split(r"[\s,]+", value) if len(part) >= 8)
    return {place.encode() for place in found if place}


def test_no_file_names_a_machine_or_a_package_index() -> None:
    here = places_of_this_machine()
    found: list[str] = []
    for path in own_files():
        content = path.read_bytes()
        if path != HERE and (match := PLACES.search(content)):
            found.append(f"{name_of(path)}: {match.group()!r}")
        found.extend(f"{name_of(path)}: names this machine" for place in here if place in content)
    assert found == []


def test_nothing_that_is_made_is_tracked() -> None:
    made = re.compile(r"(^|/)(__pycache__|\.venv|build|dist|appendonlydir)/|\.(pyc|rdb|aof)$|(^|/)millstream\.toml$")
    assert [name_of(path) for path in own_files() if made.search(name_of(path))] == []
