"""The messengers. Adding one is adding its folder and one line to `_CHANNELS`."""

from typing import Final, get_args

from shared.channels.dingtalk import CHANNEL as DINGTALK
from shared.channels.discord import CHANNEL as DISCORD
from shared.channels.feishu import CHANNEL as FEISHU
from shared.channels.mock import CHANNEL as MOCK
from shared.channels.port import Channel
from shared.channels.slack import CHANNEL as SLACK
from shared.channels.telegram import CHANNEL as TELEGRAM
from shared.channels.wecom import CHANNEL as WECOM
from shared.channels.weixin import CHANNEL as WEIXIN
from shared.channels.whatsapp import CHANNEL as WHATSAPP
from shared.errors import Refused
from shared.message import ChannelName

_CHANNELS: Final[dict[str, Channel]] = {
    each.name: each for each in (WEIXIN, FEISHU, DINGTALK, WECOM, SLACK, TELEGRAM, DISCORD, WHATSAPP, MOCK)
}

BUILT: Final = frozenset(_CHANNELS)
"""Names of the channels that work."""


class NotBuilt(Refused):
    """A channel that Millstream knows, but cannot serve yet."""


def channel(name: str) -> Channel:
    """The channel called `name`. Raises NotBuilt, which names those that are."""
    found = _CHANNELS.get(name)
    if found is not None:
        return found
    known = name in get_args(ChannelName)
    what = f"the channel {name} is not built yet" if known else "there is no such channel"
    raise NotBuilt(f"{what}: built are {', '.join(sorted(BUILT))}")
