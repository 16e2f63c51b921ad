"""What Feishu's tests share: accounts, events, sealed bodies, and a scripted platform."""

import asyncio
import base64
import hashlib
import json
from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from shared.channels.feishu import CHANNEL
from shared.channels.port import Call, Delivery, HookRequest, Part, PlatformResponse, Switches, Target
from shared.message import Message, ReplyReference
from shared.settings import AccountSettings
from tests.contracts.golden import FIXTURES, cases, load

FILES = cases("feishu")
T = TypeVar("T")

SIGNED_MS = 1793580000_000
KEY, TOKEN = "EncKeyExample2026", "vtokenEXAMPLE000000000000000000"
ME, CHAT, OWN = "ou_me", "oc_group", "om_own"


def account(**more: Any) -> AccountSettings:
    secrets = {"app_id": "cli_app", "app_secret": "s", "encrypt_key": KEY, "verification_token": TOKEN}
    base = {"id": "fs", "channel": "feishu", "self_id": ME, "credentials": secrets}
    return AccountSettings.model_validate(base | more)


def event(content: Any = None, sender: Any = None, **more: Any) -> dict[str, Any]:
    message = {
        "message_id": OWN, "chat_id": CHAT, "chat_type": "group", "message_type": "text",
        "content": json.dumps(content or {"text": "hi"}),
    }  # fmt: skip
    return {
        "header": {"event_type": "im.message.receive_v1", "event_id": "e1", "app_id": "cli_app"},
        "event": {"message": message | more, "sender": sender or {"sender_id": {"open_id": "ou_a"}}},
    }


def normalised(content: Any = None, sender: Any = None, **more: Any) -> Message:
    [found] = CHANNEL.normalise(event(content, sender, **more), account())
    return found


def vector(name: str) -> dict[str, Any]:
    return load(FIXTURES / "_vectors" / f"feishu_{name}.json")


def hook(body: str, headers: Mapping[str, str] | None = None) -> HookRequest:
    return HookRequest("POST", {name.lower(): value for name, value in (headers or {}).items()}, {}, body.encode())


def encrypted(value: Any, key: str = KEY) -> str:
    raw = json.dumps(value).encode()
    raw += bytes([16 - len(raw) % 16]) * (16 - len(raw) % 16)
    sealing = Cipher(algorithms.AES(hashlib.sha256(key.encode()).digest()), modes.CBC(bytes(16))).encryptor()
    sealed = bytes(16) + sealing.update(raw) + sealing.finalize()
    return json.dumps({"encrypt": base64.b64encode(sealed).decode()})


def signed(body: str, now_s: int = SIGNED_MS // 1000, key: str = KEY) -> HookRequest:
    seal = hashlib.sha256(f"{now_s}n{key}{body}".encode()).hexdigest()
    stamps = {"x-lark-request-timestamp": str(now_s), "x-lark-request-nonce": "n", "x-lark-signature": seal}
    return hook(body, stamps)


class Platform:
    """A platform that gives scripted answers in order and writes down what it was asked."""

    def __init__(self, *answers: tuple[int, Any] | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str, str, dict[str, str], Any]] = []
        self.login: tuple[int, Any] | Exception = (200, {"code": 0, "tenant_access_token": "t-1", "expire": 7200})
        self.logins = 0
        self.params: list[Any] = []

    async def request(
        self, call: Call, method: str, url: str, *, headers: Any = None, json: Any = None, params: Any = None, **_: Any
    ) -> PlatformResponse:
        if call == "login":
            self.logins += 1
            answer = self.login
        else:
            self.asked.append((call, method, url, dict(headers or {}), json))
            self.params.append(params)
            answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return response(*answer)


def response(status: int, body: Any) -> PlatformResponse:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return PlatformResponse(status, {"Content-Type": "application/json", "Retry-After": "3"}, raw)


def shown(**more: Any) -> tuple[int, Any]:
    item = {
        "message_id": "om_q", "chat_id": CHAT, "msg_type": "text", "sender": {"id": "ou_b", "sender_type": "user"},
        "body": {"content": '{"text": "quoted"}'},
    }  # fmt: skip
    return 200, {"code": 0, "data": {"items": [item | more]}}


def looked_up(*answers: tuple[int, Any] | Exception) -> tuple[ReplyReference, Platform]:
    platform, message = Platform(*answers), normalised(parent_id="om_q", root_id="om_r")
    assert message.reply_to is not None
    assert message.reply_to.lookup is not None
    return run(CHANNEL.lookup(message.reply_to.lookup, message, account(), platform)), platform


def sent(
    platform: Platform, text: str = "hello", target: Target | None = None, switches: Switches | None = None
) -> Delivery:
    where = target or Target(CHAT, "group", None, OWN)
    return run(CHANNEL.send(where, Part("text", text=text), "nonce", account(), platform, switches or Switches()))


def run(work: Awaitable[T]) -> T:
    """What `work` gives."""

    async def whole() -> T:
        return await work

    return asyncio.run(whole())
