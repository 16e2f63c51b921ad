"""Writes the JSON Schemas of the HTTP harness: `python -m shared.harness.schemas docs/schemas`."""

import json
import sys
from pathlib import Path

from shared.harness.http_wire import schemas


def rendered() -> dict[str, str]:
    """File name → its whole text."""
    return {name: json.dumps(schema, indent=2) + "\n" for name, schema in schemas().items()}


def write(folder: Path) -> None:
    """Write every schema into `folder`, which is made where it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in rendered().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
