"""The benchmark's own programs and pieces: requests, load, platform, templates of known conversations, environments."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from shared.channels import channel
from shared.channels.port import HookRequest
from shared.settings import AccountSettings
from workers.ops import session
from workers.ops.bench import known, load, programs, venvs
from workers.ops.bench.events import SIGNED, event, number_in, requests, signature, signed_event, text
from workers.ops.bench.scenes import SCENES
from workers.ops.output import MISUSED

ORDER = {"account": "bench", "kind": "silenced", "run": "r1", "messages": 10, "conversations": 4, "connections": 2}
NOW_S = 1_800_000_000


def test_a_conversation_stays_on_one_connection_in_order() -> None:
    lists = requests(ORDER, NOW_S)
    numbers = [[found[1] for one in requests_ if (found := number_in(one.decode()))] for requests_ in lists]
    assert numbers == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]


def test_signed_requests_are_what_slack_would_send() -> None:
    account = AccountSettings(id=SIGNED, channel="slack", self_id="U0", credentials={"signing_secret": "bench"})  # type: ignore[dict-item]
    [made] = requests(ORDER | {"account": SIGNED, "secret": "bench", "messages": 1, "connections": 1}, NOW_S)[0]
    head, _, body = made.partition(b"\r\n\r\n")
    headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in head.decode().split("\r\n")[1:])}
    channel("slack").verify(HookRequest("POST", headers, {}, body), account, NOW_S * 1000)
    assert headers["x-slack-signature"] == signature("bench", body, NOW_S)["X-Slack-Signature"]
    [message] = channel("slack").normalise(signed_event("r1", 7), account)
    assert number_in(message.text) == ("r1", 7)


def test_events_of_both_kinds_are_what_the_mock_channel_takes() -> None:
    account = AccountSettings(id="bench", channel="mock")
    [private] = channel("mock").normalise(event("answered", "r1", 3, 2), account)
    [group] = channel("mock").normalise(event("silenced", "r1", 3, 2), account)
    assert (private.chat_type, private.chat_id, group.chat_type, group.chat_id) == ("private", "p2", "group", "g2")
    assert not group.addressed


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def posted(handler: Handler, requests_: list[bytes]) -> dict[str, Any]:
    """What `load.post` tells of one connection to a server that does `handler`."""

    async def play() -> dict[str, Any]:
        running: set[asyncio.Task[Any]] = set()

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            running.add(task)
            await handler(reader, writer)
            writer.close()
            await writer.wait_closed()

        async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
            told = await load.post(server.sockets[0].getsockname()[1], [requests_])
            await asyncio.gather(*running)
            return told

    return asyncio.run(play())


def test_what_is_refused_is_sent_again_and_counted() -> None:
    answers = iter([b"503 Busy", b"200 OK", b"401 No", b"200 OK"])

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readline():
            writer.write(b"HTTP/1.1 " + next(answers) + b"\r\nRetry-After: 0\r\nContent-Length: 2\r\n\r\nok")

    told = posted(answer, [b"one\n", b"two\n", b"three\n"])
    assert (told["accepted"], told["refused"], told["failed"]) == (2, 1, {"401": 1})


def test_a_connection_that_breaks_counts_what_had_no_answer() -> None:
    async def hang_up(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.readline()

    assert posted(hang_up, [b"one\n", b"two\n"])["failed"] == {"closed": 2}


def test_a_port_that_nobody_listens_on_fails_every_request() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    told = asyncio.run(load.post(port, [[b"one\n", b"two\n"]]))
    assert (told["accepted"], told["failed"]) == (0, {"unreachable": 2})


def test_the_platform_takes_messages_and_tells_them_once() -> None:
    said = {"type": "message", "chat": "p1", "reply_to": "r1-0", "text": text("r1", 0), "nonce": "n"}
    with programs.ours("platform", 2) as platform:
        url = f"http://127.0.0.1:{platform.answer()['port']}"
        assert httpx.post(f"{url}/out", json=said, trust_env=False).json() == {"id": "n"}
        assert httpx.get(f"{url}/seen", trust_env=False).json() == [["p1", "r1-0", text("r1", 0)]]
        assert httpx.get(f"{url}/seen", trust_env=False).json() == []


def test_an_unknown_scene_is_refused_with_those_that_there_are() -> None:
    code, said = session.invoke(["bench", "--only", "nothing"])
    assert code == MISUSED
    assert all(name in said for name in SCENES)


def test_a_template_is_cut_at_its_own_names_only() -> None:
    names = ["0" * 24, known.CHAT]
    assert known.pieces(f"a:{known.CHAT}:b", names) == ["a:", 2, ":b"]
    assert known.pieces("0" * 24, names) == [1]
    assert known.pieces("", names) == [""]
    assert known.pieces("plain", []) == ["plain"]


def test_copies_of_names_look_like_the_names() -> None:
    for name in (known.CHAT, "0123456789abcdef01234567", "01ARZ3NDEKTSV4RRFFQ69G5FAV"):
        made = known.format_of(name) % 1234
        assert known.NAMES.fullmatch(made)
        assert len(made) == len(name)


@pytest.mark.slow
def test_what_cannot_be_installed_says_so_and_what_is_there_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(venvs.NotMade, match=r"pip install taskiq.* failed: ERROR"):
        venvs.python_of("taskiq", tmp_path)
    [home] = tmp_path.iterdir()
    (home / ".ready").touch()
    assert venvs.python_of("taskiq", tmp_path) == home / "bin" / "python"
