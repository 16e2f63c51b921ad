"""Access tokens: asked for once, again before they end, again once refused, and never for another account."""

import asyncio

import pytest

from shared.channels.tokens import Tokens
from shared.errors import Transient
from shared.settings import AccountSettings


class Platform:
    """Lends tokens `t1`, `t2`, … that live two hours."""

    def __init__(self) -> None:
        self.logins = 0

    async def login(self) -> tuple[str, float]:
        self.logins += 1
        return f"t{self.logins}", 7200.0


def account(key: str = "s", id_: str = "a") -> AccountSettings:
    return AccountSettings.model_validate({"id": id_, "channel": "qq", "credentials": {"secret": key}})


def test_a_token_is_kept_until_shortly_before_its_end() -> None:
    now, platform = [0.0], Platform()
    tokens = Tokens(lambda: now[0])

    def get(of: AccountSettings) -> str:
        return asyncio.run(tokens.get(of, platform.login))

    assert [get(account()), get(account())] == ["t1", "t1"]
    now[0] = 6899.0
    assert get(account()) == "t1"
    now[0] = 6900.0
    assert get(account()) == "t2"
    tokens.forget(account())
    assert get(account()) == "t3"
    assert get(account("another secret")) == "t4"
    assert get(account(id_="b")) == "t5"
    assert get(account()) == "t3"


def test_a_login_that_fails_leaves_no_token() -> None:
    platform, tokens = Platform(), Tokens(lambda: 0.0)

    async def away() -> tuple[str, float]:
        raise Transient("no connection")

    with pytest.raises(Transient):
        asyncio.run(tokens.get(account(), away))
    assert asyncio.run(tokens.get(account(), platform.login)) == "t1"
