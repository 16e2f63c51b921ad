"""Ingest as a process with a long poll: one process polls an account, and another goes on where it was killed."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.redis.client import connect
from shared.redis.embedded import Embedded, available_kinds
from tests.integration.running import eventually, free_port, running
from tests.platforms.telegram import TOKEN, Telegram

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("poll"),
    pytest.mark.skipif(available_kinds()[:1] in ([], ["fakeredis"]), reason="needs a real server"),
]


@pytest.fixture
def telegram() -> Iterator[Telegram]:
    server = Telegram()
    yield server
    server.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Embedded]:
    with Embedded.start(tmp_path / "server", durable=False) as server:
        yield server


def folder(tmp_path: Path, name: str, url: str, telegram: Telegram) -> Path:
    """A folder with a configuration of its own port."""
    made = tmp_path / name
    made.mkdir()
    (made / "millstream.toml").write_text(
        f"""
[redis]
url = "{url}"
[ingest]
port = {free_port()}
[metrics]
port = {free_port()}
[pipeline]
lease_s = 3
[[accounts]]
id = "tg"
channel = "telegram"
transport = "poll"
credentials = {{ token = "{TOKEN}", api_url = "{telegram.url}" }}
""",
        encoding="utf-8",
    )
    return made


def update(number: int) -> dict[str, object]:
    person = {"id": 5, "is_bot": False, "first_name": "Ann"}
    chat = {"id": 5, "type": "private", "first_name": "Ann"}
    message = {"message_id": number, "from": person, "chat": chat, "date": 1790000000, "text": "hello"}
    return {"update_id": 1000 + number, "message": message}


def test_one_process_polls_and_another_goes_on_when_it_is_killed(
    tmp_path: Path, server: Embedded, telegram: Telegram
) -> None:
    client = connect(server.url)

    def taken() -> int:
        return int(client.hget("ms:depth", "*") or 0)

    def fence() -> str:
        return (client.hget("ms:held", "acct:tg") or "").split("|")[0]

    first, second, housekeeper = (folder(tmp_path, name, server.url, telegram) for name in ("a", "b", "k"))
    with running(housekeeper, "keeper"), running(first, "ingest") as one:
        eventually(lambda: bool(fence()), "the first process holds the account's lease")
        holder = fence()
        with running(second, "ingest") as two:
            two.says('"state": "standby"')
            telegram.push(update(1))
            eventually(lambda: taken() == 1, "the update is taken")
            assert fence() == holder
            one.process.send_signal(signal.SIGKILL)
            one.process.wait(10)
            telegram.push(update(2))
            eventually(lambda: taken() == 2, "the other process takes the next one")
            assert fence() != holder
            eventually(lambda: '"offset": 1003' in (client.get("ms:cursor:tg") or ""), "and moves the cursor")
            two.process.send_signal(signal.SIGTERM)
            assert two.process.wait(30) == 0
        assert fence() == "", "a process that ends gives its lease back"
    assert [refusal for refusal in telegram.refusals if "one poller" in refusal] == []
    client.close()
