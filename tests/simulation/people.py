"""Who speaks, where, and under which configuration."""

import random
from collections.abc import Mapping
from typing import Any, Final

from shared.message import Lookup, Message, ReplyReference
from shared.settings import Settings, from_mapping
from tests.simulation.mix import Mix
from tests.simulation.outside import TIMEOUT_S

PREFIX: Final = "sim:"
LANE_MAX: Final = 5
CONCURRENCY: Final = 3
INDEX_MAX: Final = 5
"""Entries of an outbound index here, so that it is soon full."""

_ALL: Final[Mapping[str, Any]] = {
    "join_s": 0, "ack": "none", "language": "en", "owners": ["1"], "members": ["2"], "blocked": ["5"], "self_id": "9",
    "direct_per_minute": 3, "engagement": {"cooldown_s": 20},
}  # fmt: skip
ACCOUNTS: Final[tuple[Mapping[str, Any], ...]] = (
    {**_ALL, "id": "tg", "channel": "telegram", "credentials": {"token": "1:simulated"}, "stale_after_s": 30},
    {
        **_ALL, "id": "mk", "channel": "mock", "credentials": {"callback_url": "http://mock.invalid/"},
        "answer_bots": True, "bot_turns": 2,
    },
    {
        **_ALL, "id": "sl", "channel": "slack", "credentials": {"token": "simulated", "signing_secret": "simulated"},
        "groups": "listed", "listed_groups": ["-100"], "direct": "members", "session_scope": "sender",
        "owner_group_mode": "all", "owner_min_interval_s": 10, "owner_name": "Ada",
    },
)  # fmt: skip
"""One channel that read-only stops, the mock, which it does not, and one whose quotes must be looked up."""


def settings_of(url: str, *, idempotent: bool) -> Settings:
    """The configuration: short times and small bounds, so that each is reached."""
    return from_mapping(
        {
            "redis": {"url": url, "prefix": PREFIX},
            "ingest": {"batch_linger_ms": 0},
            "index": {"max_entries": INDEX_MAX},
            "harness": {
                "timeout_s": TIMEOUT_S,
                "idempotent": idempotent,
                "concurrency": CONCURRENCY,
                "give_up_s": 900,
                "breaker": {"failures": 2, "open_s": 5},
            },
            "pipeline": {
                "partitions": 4,
                "lease_s": 6,
                "claim_s": 3,
                "order_wait_s": 5,
                "lane_max": LANE_MAX,
                "retry": {"attempts": 4, "base_s": 1, "max_s": 8},
            },
            "accounts": [dict(account) for account in ACCOUNTS],
        }
    )


SAYINGS: Final = (
    "少说点", "Please be quiet", "救命", "is this a BUG?", "Ada, look", "/status", "/new", "/stop@9", "/stop@else", "",
)  # fmt: skip
"""What is said besides plain questions: negative, piercing, keyword, the owner's name, commands, nothing."""


def message_of(number: int, rng: random.Random, now_ms: int, mix: Mix) -> Message:
    """One of few conversations: private ones of everybody, and groups of all of them. Some keys have been used before,
    some will be."""
    account = rng.choices(ACCOUNTS, (4, 4, 2))[0]
    sender = rng.choices("123459", (6, 3, 5, 5, 1, 1))[0]
    group = rng.random() < 0.45
    chat = rng.choice(("-100", "-100", "-100", "-200")) if group else sender
    text = rng.choice(SAYINGS) if rng.random() < mix.sayings else f"question {number}"
    text = "/stop" if rng.random() < mix.stops else text
    pings = group and rng.random() < 0.7
    keys = [str(number)]
    if rng.random() < 0.15:
        keys.insert(rng.randrange(2), str(rng.randrange(max(number - 6, 1), number + 6)))
    return Message.model_validate(
        {
            "channel": account["channel"],
            "account": account["id"],
            "message_id": str(number),
            "keys": tuple(dict.fromkeys(keys)),
            "chat_id": chat,
            "chat_type": "group" if group else "private",
            "sender_id": sender,
            "sender_is_bot": sender == "4" and account["id"] == "mk" and rng.random() < 0.6,
            "system": rng.random() < 0.02,
            "text": text,
            "text_raw": text,
            "addressed": pings and rng.random() < 0.5,
            "mentions": rng.choice((("9",), ("9", "7"))) if pings else rng.choice(((), (), ("7",))),
            "mentions_all": group and rng.random() < 0.05,
            "mentions_bot": None,
            "reply_to": _quote(str(account["id"]), chat, rng, now_ms) if rng.random() < 0.4 else None,
            "sent_at_ms": now_ms - rng.choice((0, 1000, 29_000, 40_000)) if rng.random() < 0.2 else None,
        }
    )


def _quote(account: str, chat: str, rng: random.Random, now_ms: int) -> ReplyReference:
    """What is quoted: told by the event, or to be looked up where the account does so."""
    match account:
        case "sl":
            wanted = Lookup(via="platform", chat_id=chat, message_id=f"{rng.randrange(1, 9)}.000001")
        case "mk" if rng.random() < 0.5:
            at_ms = now_ms - 1000 if rng.random() < 0.5 else None
            wanted = Lookup(
                via="index", chat_id=chat, message_id=f"mock-{rng.randrange(900_001, 900_009)}", quoted_at_ms=at_ms
            )
        case _:
            return ReplyReference(message_id="1", content="what was said", source="payload")
    return ReplyReference(message_id=wanted.message_id, lookup=wanted)
