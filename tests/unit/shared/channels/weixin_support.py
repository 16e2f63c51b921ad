"""A Weixin account and its messages, for the channel's unit tests."""

from typing import Any

from shared.channels.weixin import CHANNEL
from shared.message import Message
from shared.settings import AccountSettings

USER, BOT = "o9xxInvented_A@im.wechat", "5f0c2ab17d34@im.bot"
MESSAGE_ID, QUOTED_ID = 7500595754332471560, "7500581098742245128"


def account(**more: Any) -> AccountSettings:
    credentials = {"token": "invented-token", "secret": "tide", "api_url": "https://region.example/"}
    base = {"id": "wx", "channel": "weixin", "self_id": BOT, "credentials": credentials}
    return AccountSettings.model_validate(base | more)


def item(**more: Any) -> dict[str, Any]:
    return {"type": 1, "text_item": {"text": "现在呢"}} | more


def raw(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    base = {
        "message_id": MESSAGE_ID, "from_user_id": USER, "to_user_id": BOT, "client_id": "c1", "message_type": 1,
        "context_token": "ctx", "item_list": list(items) or [item()],
    }  # fmt: skip
    return base | more


def normalised(*items: dict[str, Any], **more: Any) -> Message:
    [found] = CHANNEL.normalise({"msgs": [raw(*items, **more)]}, account())
    return found


def quote(**ref: Any) -> Message:
    return normalised(item(ref_msg=ref))
