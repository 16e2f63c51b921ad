"""The emulated platforms keep the rules that other tests rely on."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from shared.channels import channel
from shared.channels.port import HookRequest
from shared.settings import AccountSettings
from tests.contracts.golden import FIXTURES
from tests.platforms.emulator import running
from tests.platforms.harness_server import reply, serving
from tests.platforms.slack import SIGNING_SECRET, Slack
from tests.platforms.telegram import SECRET, TOKEN, Telegram

ROOT = Path(__file__).parents[2]


@pytest.fixture
def telegram() -> Iterator[Telegram]:
    with running(Telegram()) as platform:
        yield platform


def ask(url: str, body: dict[str, Any] | None = None) -> Any:
    method = "GET" if body is None else "POST"
    return httpx.request(method, url, json=body, timeout=20, trust_env=False).json()


def updates(platform: Telegram, **body: Any) -> Any:
    return ask(f"{platform.url}/bot{TOKEN}/getUpdates", body)


def test_updates_stay_until_they_are_confirmed(telegram: Telegram) -> None:
    for number in (7, 8):
        telegram.push({"update_id": number})
    assert [each["update_id"] for each in updates(telegram)["result"]] == [7, 8]
    assert [each["update_id"] for each in updates(telegram)["result"]] == [7, 8]
    assert [each["update_id"] for each in updates(telegram, offset=8)["result"]] == [8]
    assert updates(telegram, offset=9)["result"] == []


def test_one_bot_one_poller(telegram: Telegram) -> None:
    answers: list[Any] = []
    first = threading.Thread(target=lambda: answers.append(updates(telegram, timeout=20)))
    first.start()
    telegram.wait_for(lambda: telegram.requests == 1)
    assert updates(telegram)["ok"] is True
    first.join(20)
    assert answers[0]["error_code"] == 409
    telegram.webhook = True
    assert updates(telegram)["description"].startswith("Conflict: can't use getUpdates method while webhook")


def test_webhooks_are_signed_as_the_channels_verify_them() -> None:
    golden = json.loads((FIXTURES / "slack" / "plain_private.json").read_text(encoding="utf-8"))["event"]
    with running(Telegram()) as telegram, running(Slack()) as slack, serving(reply(200)) as ingest:
        assert telegram.call_webhook(ingest.url, {"update_id": 1}) == 200
        assert slack.callback(ingest.url, golden, X_Slack_Retry_Num="1") == 200
    by_telegram, by_slack = ingest.requests
    who = AccountSettings.model_validate({"id": "a", "channel": "telegram", "credentials": {"secret": SECRET}})
    channel("telegram").verify(HookRequest("POST", by_telegram.headers, {}, by_telegram.body), who, 0)
    stamp = int(by_slack.headers["x-slack-request-timestamp"]) * 1000
    secrets = {"signing_secret": SIGNING_SECRET}
    who = AccountSettings.model_validate({"id": "a", "channel": "slack", "credentials": secrets})
    channel("slack").verify(HookRequest("POST", by_slack.headers, {}, by_slack.body), who, stamp)
    assert by_slack.headers["x-slack-retry-num"] == "1"


@pytest.mark.parametrize("name", ["telegram", "slack"])
def test_a_platform_in_its_own_process_is_steered_over_http(name: str, tmp_path: Path) -> None:
    log = tmp_path / "sent.jsonl"
    command = [sys.executable, "-m", f"tests.platforms.{name}", "--log", str(log)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            method = {"telegram": "sendMessage", "slack": "chat.postMessage"}[name]
            ask(f"{url}/_control/fail", {"method": method, "kind": "refuse", "status": 429, "body": {"no": 1}})
            path = f"/bot{TOKEN}/{method}" if name == "telegram" else f"/{method}"
            assert ask(url + path, {}) == {"no": 1}
            assert ask(f"{url}/_control/seen") == []
            if name == "telegram":
                assert ask(url + path, {"chat_id": 5, "text": "hi"})["ok"] is True
                assert json.loads(log.read_text(encoding="utf-8")) == ask(f"{url}/_control/seen")[0]
                ask(f"{url}/_control/push", {"update_id": 3})
                assert ask(f"{url}/bot{TOKEN}/getUpdates", {})["result"] == [{"update_id": 3}]
            assert isinstance(ask(f"{url}/_control/refusals"), list)
        finally:
            process.terminate()
            process.wait(20)
