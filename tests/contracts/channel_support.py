"""What the channels' contract tests share: accounts of the emulated platforms and one call at a time."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from shared.channels.http import HttpApi
from shared.channels.port import Target
from shared.settings import AccountSettings
from tests.platforms import slack as slack_platform
from tests.platforms import telegram as telegram_platform
from tests.platforms.emulator import running
from tests.platforms.slack import Slack
from tests.platforms.telegram import Telegram

TOKENS = {"telegram": telegram_platform.TOKEN, "slack": slack_platform.TOKEN, "mock": ""}
TARGETS = {
    "telegram": Target("-1002000000123", "group", None, "2001"),
    "slack": Target("C07HARBOR01", "group", None, "1790000202.000229"),
    "mock": Target("team", "group", None, "1"),
}


@contextmanager
def both() -> Iterator[dict[str, Telegram | Slack]]:
    """The two emulated platforms by name."""
    with running(Telegram()) as telegram, running(Slack()) as slack:
        yield {"telegram": telegram, "slack": slack}


def account(name: str, url: str, **more: Any) -> AccountSettings:
    credentials = {"token": TOKENS[name], "api_url": url, "callback_url": url}
    return AccountSettings.model_validate({"id": "acct", "channel": name, "credentials": credentials, **more})


def with_api(name: str, work: Callable[[HttpApi], Any]) -> Any:
    async def once() -> Any:
        api = HttpApi("acct", name)
        try:
            return await work(api)
        finally:
            await api.aclose()

    return asyncio.run(once())
