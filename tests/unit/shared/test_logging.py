"""No text, no secret, static names, one context a message."""

import io
import json
import logging
import sys
from collections.abc import Iterator

import pytest
import structlog

from shared.logging import MASK, bind, clear, configure, logger, quoted_id_hash
from shared.settings import LogSettings


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    stream = io.StringIO()
    configure(LogSettings(format="json", level="debug"), stream)
    yield stream
    clear()
    structlog.reset_defaults()
    root.handlers[:] = before[0]
    root.setLevel(before[1])


def last(stream: io.StringIO) -> dict[str, object]:
    return json.loads(stream.getvalue().splitlines()[-1])


def test_json_line_has_name_level_time_and_fields(lines: io.StringIO) -> None:
    logger("quotes").warning("quote_unresolved", reason="not-found", account="main")
    line = last(lines)
    assert line.pop("timestamp", "").__class__ is str
    assert line == {
        "event": "quote_unresolved", "level": "warning", "log": "quotes", "reason": "not-found", "account": "main",
    }  # fmt: skip


def test_context_is_bound_once_and_cleared(lines: io.StringIO) -> None:
    log = logger("admission")
    bind(id="01J", stage="admission")
    log.info("stage_done")
    assert last(lines)["id"] == "01J"
    clear()
    log.info("stage_done")
    assert "id" not in last(lines)


@pytest.mark.parametrize(
    "key",
    ["text", "prompt", "content", "token", "secret", "quoted_text", "payload", "api_key", "Authorization", "bot_token",
     "redis_url", "quoted_id", "body", "credentials", "reply_to"],
)  # fmt: skip
def test_fields_of_text_and_secrets_are_masked(lines: io.StringIO, key: str) -> None:
    logger("x").info("event_seen", **{key: "the tide is out", "more": {key: ["the tide is out"]}})
    assert last(lines)[key] == MASK
    assert "tide" not in lines.getvalue()


def test_passwords_and_bot_tokens_in_strings_are_masked(lines: io.StringIO) -> None:
    logger("x").info("server_lost", server="redis://worker:p@ss@127.0.0.1/0", path="/bot7100042:AAE-xy_z/getMe")
    assert last(lines)["server"] == f"redis://{MASK}127.0.0.1/0"
    assert last(lines)["path"] == f"/bot{MASK}/getMe"


@pytest.mark.parametrize("name", ["the tide is out", "", "Stage Done", "x" * 65])
def test_an_event_name_that_is_no_constant_is_replaced(lines: io.StringIO, name: str) -> None:
    logger("x").info(name)
    assert last(lines)["event"] == "unnamed_event"


def test_exceptions_keep_class_and_places_without_message(lines: io.StringIO) -> None:
    try:
        raise ValueError("the tide is out")
    except ValueError:
        logger("x").exception("stage_failed")
    assert last(lines)["error"] == "ValueError"
    frames = last(lines)["frames"]
    assert isinstance(frames, list)
    assert frames[-1].startswith("test_logging.py:")
    assert "tide" not in lines.getvalue()


def test_other_libraries_are_heard_by_template_only(lines: io.StringIO) -> None:
    try:
        raise RuntimeError("the tide is out")
    except RuntimeError as error:
        logging.getLogger("celery.app").error("Task %s raised: %r", "x", error, exc_info=True)
    line = last(lines)
    assert line["event"] == "Task %s raised: %r"
    assert line["log"] == "celery.app"
    assert line["error"] == "RuntimeError"
    logging.getLogger("asyncio").error("Task exception was never retrieved\nfuture: RuntimeError('the tide is out')")
    assert last(lines)["event"] == "Task exception was never retrieved"
    assert "tide" not in lines.getvalue()


@pytest.mark.parametrize("name", ["httpx", "uvicorn", "uvicorn.access", "uvicorn.error"])
def test_http_libraries_are_silent_below_warning(lines: io.StringIO, name: str) -> None:
    logging.getLogger(name).info("HTTP Request: POST https://127.0.0.1/bot7100042:AAE/sendMessage")
    assert lines.getvalue() == ""


def test_level_is_kept(lines: io.StringIO) -> None:
    configure(LogSettings(format="json", level="warning"), lines)
    logger("x").info("event_seen")
    logging.getLogger("kombu").info("ignored")
    assert lines.getvalue() == ""


def test_auto_is_json_where_there_is_no_terminal(lines: io.StringIO) -> None:
    configure(LogSettings(), lines)
    logger("x").info("event_seen")
    assert last(lines)["event"] == "event_seen"


def test_console_masks_as_well(lines: io.StringIO) -> None:
    configure(LogSettings(format="console"), lines)
    try:
        raise ValueError("the tide is out")
    except ValueError:
        logger("x").exception("stage_failed", text="the tide is out", exc_info=sys.exc_info())
    assert "stage_failed" in lines.getvalue()
    assert "tide" not in lines.getvalue()


def test_f17_quoted_id_hash_is_stable_short_and_keyed() -> None:
    # HMAC-SHA-256("key", "The quick brown fox jumps over the lazy dog") is a published vector.
    assert quoted_id_hash(b"key", "The quick brown fox jumps over the lazy dog") == "f7bc83f430538424"
    assert quoted_id_hash(b"other", "1001") != quoted_id_hash(b"key", "1001")
    assert len(quoted_id_hash(b"key", "\ud800")) == 16
