"""From a platform's webhook to the answer at the platform, through real processes: one a stage, ingest and keeper."""

import json
import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.chaos.harness import Harness, between
from tests.chaos.load import tables
from tests.integration.world import STAGES, World, eventually, server, world
from tests.platforms.callback import Callback
from tests.platforms.emulator import post, running
from tests.platforms.slack import SIGNING_SECRET, Slack
from tests.platforms.slack import TOKEN as SLACK_TOKEN
from tests.platforms.telegram import SECRET, TOKEN, Telegram

ROOT_TS = "1790000100.000100"


@dataclass(frozen=True)
class Whole:
    """Everything of this file's one world."""

    now: World
    harness: Harness
    callback: Callback
    telegram: Telegram
    slack: Slack

    def turn(self, text: str) -> dict[str, Any]:
        """The harness's turn with this text, as soon as it has come."""
        return eventually(lambda: next((t for t in self.harness.turns if t["text"] == text), None), 30, text)

    def mock(self, **event: Any) -> int:
        return post(self.now.hook("demo"), json.dumps(event).encode(), {})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Generator[Whole]:
    folder = tmp_path_factory.mktemp("pipeline")
    with (
        running(Harness(between(1, 5, 1))) as harness,
        running(Callback()) as callback,
        running(Telegram()) as telegram,
        running(Slack()) as slack,
        server(folder) as on,
    ):
        config = tables(harness, callback, people=1)
        config["accounts"] += [
            {
                "id": "tg",
                "channel": "telegram",
                "join_s": 0,
                "credentials": {"token": TOKEN, "secret": SECRET, "api_url": telegram.url},
            },
            {
                "id": "sl",
                "channel": "slack",
                "self_id": "U07TIDEBOT",
                "join_s": 0,
                "credentials": {"token": SLACK_TOKEN, "signing_secret": SIGNING_SECRET, "api_url": slack.url},
            },
        ]
        with world(folder, on, **config) as now:
            now.start(*STAGES, "ingest", "keeper")
            yield Whole(now, harness, callback, telegram, slack)


def test_a_mock_message_is_answered_in_reply_to_it(whole: Whole) -> None:
    assert whole.mock(message_id="one", sender="p0", text="when is low water?") == 200
    whole.callback.wait_for(lambda: any(s.chat == "p0" for s in whole.callback.sends))
    [sent] = [s for s in whole.callback.sends if s.chat == "p0"]
    assert (sent.account, sent.text, sent.reply_to) == ("demo", "re: when is low water?", "one")


def test_a_telegram_webhook_is_answered_by_the_bot_api(whole: Whole) -> None:
    mila = {"id": 510000111, "is_bot": False, "first_name": "Mila"}
    chat = {"id": 510000111, "first_name": "Mila", "type": "private"}
    quoted = {"message_id": 1000, "from": mila, "chat": chat, "date": int(time.time()), "text": "low water at nine"}
    message = {**quoted, "message_id": 1001, "text": "is that right?", "reply_to_message": quoted}
    update = {"update_id": 820000001, "message": message}
    assert whole.telegram.call_webhook(whole.now.hook("tg"), update) == 200
    assert whole.telegram.call_webhook(whole.now.hook("tg"), update, secret="wrong") == 401
    assert whole.turn("is that right?")["reply_to"]["content"] == "low water at nine"
    whole.telegram.wait_for(lambda: bool(whole.telegram.sent("sendMessage")))
    [sent] = whole.telegram.sent("sendMessage")
    assert (sent["chat_id"], sent["text"]) == (510000111, "re: is that right?")
    assert sent["reply_parameters"]["message_id"] == 1001
    assert whole.telegram.refusals == []


def test_a_slack_quote_is_looked_up_and_answered_in_its_thread(whole: Whole) -> None:
    root = {
        "type": "message",
        "ts": ROOT_TS,
        "thread_ts": ROOT_TS,
        "user": "U0ANNA",
        "text": "The report is in the drawer",
    }
    whole.slack.messages["D0TIDE"] = [root]
    event = {
        "type": "message", "channel": "D0TIDE", "channel_type": "im", "user": "U0MILA", "text": "which drawer?",
        "ts": "1790000200.000200", "thread_ts": ROOT_TS, "parent_user_id": "U0ANNA",
    }  # fmt: skip
    callback = {"type": "event_callback", "event_id": "Ev0TIDE01", "team_id": "T07TIDE1XA", "event": event}
    assert whole.slack.callback(whole.now.hook("sl"), callback) == 200
    assert whole.turn("which drawer?")["reply_to"]["content"] == "The report is in the drawer"
    whole.slack.wait_for(lambda: bool(whole.slack.sent("chat.postMessage")))
    [sent] = whole.slack.sent("chat.postMessage")
    assert (sent["channel"], sent["thread_ts"], sent["text"]) == ("D0TIDE", ROOT_TS, "re: which drawer?")
    assert whole.slack.refusals == []


HOSTILE = ['a"b', "a\\b", "100% %1", "a|b,c", "]==] --", "\x01", "línea\nnueva", "👩\u200d👧", "x" * 256]


def test_hostile_ids_are_names_like_any_other(whole: Whole) -> None:
    for name in HOSTILE:
        assert whole.mock(message_id=name, sender=name, chat=name, thread=name, text=f"from {len(name)}") == 200
    whole.callback.wait_for(lambda: {s.chat for s in whole.callback.sends} >= set(HOSTILE))
    for name in HOSTILE:
        [sent] = [s for s in whole.callback.sends if s.chat == name]
        assert sent.reply_to == name
    whole.now.rest(20)
    assert whole.now.left() == {}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[" * 5000 + b"]" * 5000, 400),
        (b'{"message_id": 7}', 400),
        (b"\xff\xfe", 400),
        (b"x" * 2_000_000, 413),
    ],
    ids=["broken", "deep", "wrong-type", "no-text", "too-large"],
)
def test_what_cannot_be_read_is_refused_and_harms_nobody(body: bytes, status: int, whole: Whole) -> None:
    assert post(whole.now.hook("demo"), body, {}) == status
    text = f"still here after {status} {len(body)}"
    assert whole.mock(message_id=f"after-{len(body)}", sender="p0", text=text) == 200
    whole.callback.wait_for(lambda: any(s.text == f"re: {text}" for s in whole.callback.sends))
