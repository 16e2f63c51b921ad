"""The messengers. Adding one is adding its folder and one line to `_CHANNELS`."""

from typing import Final, get_args

from shared.channels.mock import CHANNEL as MOCK
from shared.channels.port import Channel
from shared.channels.slack import CHANNEL as SLACK
from shared.channels.telegram import CHANNEL as TELEGRAM
from shared.errors import Refused
from shared.message import ChannelName

_CHANNELS: Final[dict[str, Channel]] = {each.name: each for each in (TELEGRAM, SLACK, MOCK)}

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
