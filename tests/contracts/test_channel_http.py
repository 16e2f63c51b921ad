"""The network port at the socket: exactly one request whatever happens, and the right word for what happened."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from shared.channels.http import HttpApi
from shared.channels.port import PlatformResponse
from shared.errors import EffectUnknown, Refused, Transient
from tests.platforms.harness_server import LoopbackServer, Reply, refused_url, reply, serving, stream

SECRET = "invented-token"


class Noted:
    """What the port reported of its requests."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str]] = []

    def __call__(self, call: str, status: str, seconds: float) -> None:
        assert seconds >= 0
        self.rows.append((call, status))


def ask(url: str, noted: Noted | None = None, **more: Any) -> PlatformResponse:
    async def once() -> PlatformResponse:
        api = HttpApi("acct", "telegram", noted)
        try:
            return await api.request("send", "POST", url, json={"text": "潮汐 🛟"}, **more)
        finally:
            await api.aclose()

    return run(once())


def run(work: Coroutine[Any, Any, PlatformResponse]) -> PlatformResponse:
    return asyncio.run(work)


def address(server: LoopbackServer) -> str:
    return f"{server.url}/bot{SECRET}"


def test_a_request_comes_as_it_was_given_and_is_observed() -> None:
    noted = Noted()
    with serving(reply(200, {"ok": True})) as server:
        response = ask(address(server), noted, headers={"x-one": "1"}, params={"a": "b c"})
    [seen] = server.requests
    assert (seen.method, seen.target) == ("POST", f"/turns/bot{SECRET}?a=b+c")
    assert seen.headers["x-one"] == "1"
    assert seen.json() == {"text": "潮汐 🛟"}
    assert response.json() == {"ok": True}
    assert noted.rows == [("send", "200")]


@pytest.mark.parametrize(
    "planned",
    [
        Reply((), "close"),
        Reply((), "reset"),
        Reply((b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf",), "close"),
        Reply((b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf",), "reset"),
        Reply((b"no http at all\r\n\r\n",), "close"),
        stream(b"x" * 10, then="hold", ended=False),
        Reply((), "hold"),
    ],
    ids=["closed", "reset", "cut-off", "reset-in-body", "garbage", "stalls-in-body", "never-answers"],
)
def test_r45_p11_broken_after_the_request_is_unknown_and_never_repeated(planned: Reply) -> None:
    noted = Noted()
    with serving(planned) as server, pytest.raises(EffectUnknown) as caught:
        ask(address(server), noted, timeout_s=0.4)
    assert len(server.requests) == 1
    assert server.connections == 1
    assert noted.rows == [("send", "unknown")]
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("status", [302, 400, 429, 500, 503])
def test_a_status_is_an_answer_and_never_repeated_or_followed(status: int) -> None:
    noted = Noted()
    with serving(reply(status, {}, Location="http://127.0.0.1:9/", Retry_After="1")) as server:
        assert ask(address(server), noted).status == status
    assert len(server.requests) == 1
    assert noted.rows == [("send", str(status))]


def test_not_connected_is_transient() -> None:
    noted = Noted()
    with pytest.raises(Transient) as caught:
        ask(refused_url() + SECRET, noted)
    assert noted.rows == [("send", "not_connected")]
    assert SECRET not in str(caught.value)


def test_a_request_that_cannot_be_sent_is_refused() -> None:
    with pytest.raises(Refused):
        ask("ftp://127.0.0.1/x")


def test_an_answer_beyond_the_limit_is_cut_off() -> None:
    with serving(reply(200, b"x" * 2001)) as server, pytest.raises(EffectUnknown):
        ask(address(server), max_bytes=2000)
    assert len(server.requests) == 1
    with serving(reply(200, b"x" * 2000)) as server:
        assert len(ask(address(server), max_bytes=2000).body) == 2000


def test_lone_halves_of_surrogate_pairs_can_be_sent() -> None:
    async def once(url: str) -> PlatformResponse:
        api = HttpApi("acct", "slack")
        try:
            return await api.request("send", "POST", url, json={"text": "\ud83d"})
        finally:
            await api.aclose()

    with serving(reply(200, {})) as server:
        assert run(once(address(server))).status == 200


def test_a_cancelled_request_is_observed() -> None:
    noted = Noted()

    async def cut_short(server: LoopbackServer) -> None:
        api = HttpApi("acct", "slack", noted)
        task = asyncio.ensure_future(api.request("identity", "GET", address(server)))
        await asyncio.to_thread(server.wait_for_requests, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await api.aclose()

    with serving(Reply((), "hold")) as server:
        asyncio.run(cut_short(server))
    assert noted.rows == [("identity", "cancelled")]
