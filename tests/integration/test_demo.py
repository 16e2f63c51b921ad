"""`make demo` tells its story: once, in real processes, with nothing left running."""

from pathlib import Path

import pytest

from tests.integration.running import alive, descendants, eventually, running

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("demo")]

ROWS = [
    ("这条什么意思", "answered (rule.addressed)", "You asked about “明天十点开会”: 这条什么意思"),
    ("when do we ship?", "answered (rule.addressed)", "You asked: when do we ship?"),
    ("the same event, sent again by Slack", "duplicate"),
    ("晚饭吃什么", "silenced (no_signal)"),
    ("少说点", "silenced (cooldown.entered)"),
    ("在吗", "silenced (cooldown.active)"),
    ("what does this mean?", "answered (rule.addressed)", "the quote could not be read"),
    ("a task of another application", "dead (poison)"),
    ("book a table for two", "dead (harness-refused) → answered (private)", "You asked: book a table for two"),
]


def test_the_demo_tells_its_story_and_leaves_nothing_running(tmp_path: Path) -> None:
    (tmp_path / "millstream.toml").write_text("a real configuration does not change the story, not even a wrong one")
    below: set[int] = set()
    with running(tmp_path, "demo") as demo:

        def ended() -> bool:
            below.update(descendants(demo.process.pid))
            return demo.process.poll() is not None

        eventually(ended, "the demo has ended", within_s=120)
        assert demo.process.returncode == 0, demo.said()
        said = demo.said()
    assert len(below) >= 8, "ingest, six workers and the keeper were processes"
    assert [pid for pid in below if alive(pid)] == []
    rest = said
    for texts in ROWS:
        for text in texts:
            assert text in rest, f"{text!r} is not told, or not in its place:\n{said}"
            rest = rest[rest.index(text) :]
    assert "nothing is left running" in said
    assert "millstream up" in said
