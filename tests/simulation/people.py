"""Who speaks, where, and under which configuration."""

import random
from typing import Final

from shared.message import Message, ReplyReference
from shared.settings import Settings, from_mapping
from tests.simulation.outside import TIMEOUT_S

PREFIX: Final = "sim:"


def settings_of(url: str, *, idempotent: bool) -> Settings:
    """Two accounts, one of a channel that read-only stops and the mock, which it does not."""
    account = {"join_s": 0, "ack": "none", "language": "en", "owners": ["1"], "members": ["2"], "self_id": "9"}
    return from_mapping(
        {
            "redis": {"url": url, "prefix": PREFIX},
            "ingest": {"batch_linger_ms": 0},
            "harness": {
                "timeout_s": TIMEOUT_S,
                "idempotent": idempotent,
                "concurrency": 3,
                "give_up_s": 900,
                "breaker": {"failures": 3, "open_s": 5},
            },
            "pipeline": {
                "partitions": 4,
                "lease_s": 6,
                "claim_s": 3,
                "order_wait_s": 5,
                "lane_max": 8,
                "retry": {"attempts": 4, "base_s": 1, "max_s": 8},
            },
            "accounts": [
                {**account, "id": "tg", "channel": "telegram", "credentials": {"token": "1:simulated"}},
                {**account, "id": "mk", "channel": "mock", "credentials": {"callback_url": "http://mock.invalid/"}},
            ],
        }
    )


def message_of(number: int, rng: random.Random) -> Message:
    """One of few conversations: private ones of owner, member and guests, and a group of all of them."""
    account, channel = rng.choice((("tg", "telegram"), ("mk", "mock")))
    sender = rng.choice("11234")
    group = rng.random() < 0.4
    text = "/stop" if rng.random() < 0.08 else f"question {number}"
    quote = ReplyReference(message_id="1", content="what was said", source="payload") if rng.random() < 0.4 else None
    chat = "-100" if group else sender
    return Message.model_validate(
        {
            "channel": channel,
            "account": account,
            "message_id": str(number),
            "keys": (f"{chat}:{number}",),
            "chat_id": chat,
            "chat_type": "group" if group else "private",
            "sender_id": sender,
            "text": text,
            "text_raw": text,
            "addressed": group and rng.random() < 0.8,
            "mentions_bot": False if group else None,
            "reply_to": quote,
        }
    )
