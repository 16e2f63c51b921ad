"""`python -m tests.chaos`: every scene, and the table at the end. Arguments go to pytest."""

import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent

if __name__ == "__main__":
    # A file stays in one test process, so that its scenes share what they run on.
    scenes = sorted(str(path) for path in FOLDER.glob("test_scenes_*.py"))
    sys.exit(pytest.main(["-n", "2", "--dist", "loadfile", *scenes, *sys.argv[1:]]))
