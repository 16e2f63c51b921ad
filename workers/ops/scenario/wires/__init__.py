"""What the channels' real send requests say, and what their platforms answer to one that succeeds. Pure.

A channel is one module here with a `WIRE`, and one line in `_WIRES`.
"""

from collections.abc import Mapping
from typing import Any, Final

from workers.ops.scenario.wires import dingtalk, discord, feishu, mock, slack, telegram, wecom, weixin, whatsapp
from workers.ops.scenario.wires.wire import Body, Wire

__all__ = ["Body", "Wire", "wire_of"]

_WIRES: Final[Mapping[str, Wire]] = {
    "dingtalk": dingtalk.WIRE,
    "discord": discord.WIRE,
    "feishu": feishu.WIRE,
    "mock": mock.WIRE,
    "slack": slack.WIRE,
    "telegram": telegram.WIRE,
    "wecom": wecom.WIRE,
    "weixin": weixin.WIRE,
    "whatsapp": whatsapp.WIRE,
}

FIRST_ID: Final = 900_000
"""Invented ids of sent messages begin above those that a scenario writes by hand."""


def wire_of(channel: str) -> Wire:
    """The channel's wire. Raises KeyError for a channel not built."""
    return _WIRES[channel]


def success_of(channel: str, url: str, body: Body, serial: int, now_ms: int) -> Any:
    """The platform's own answer to a send that it took, with an invented id that grows with `serial`."""
    return wire_of(channel).success(url, body, FIRST_ID + serial, now_ms)
