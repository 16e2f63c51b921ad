"""A program that sends a file of saved events as `millstream replay` does, told when to begin.

Arguments: the configuration file. One JSON order a line: {"file": PATH}; it answers {began, seconds, events, bad}.
"""

import asyncio
import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

from ingest.publisher import Publisher
from ingest.replay import Replay
from shared.channels import channel
from shared.process import Process, build
from shared.settings import load


async def send(process: Process, file: Path) -> dict[str, Any]:
    """Send one file."""
    settings = process.config.settings
    publisher = Publisher(
        process.client, process.scripts, lambda: settings, process.clock.now_ms, process.partitions
    )  # fmt: skip
    rng = random.Random()  # noqa: S311 - jitter only
    replay = Replay(settings.account, channel, publisher, process.clock, settings.pipeline.retry, rng)
    began = time.monotonic()
    summary = await replay.run(file, 0)
    return {
        "began": began, "seconds": time.monotonic() - began, "events": len(summary.ids), "bad": len(summary.bad),
    }  # fmt: skip


def main() -> None:
    """Serve orders until standard input closes."""
    process = build(load(Path(sys.argv[1]), os.environ), starting=False)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(asyncio.run(send(process, Path(json.loads(line)["file"])))), flush=True)


if __name__ == "__main__":
    main()
