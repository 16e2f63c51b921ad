"""What stands for calls that a platform does not have, where the port must say something all the same."""

from shared.channels.outcomes import unavailable
from shared.channels.port import Identity, PlatformApi
from shared.message import Lookup, Message, ReplyReference
from shared.settings import AccountSettings


async def not_delivered(wanted: Lookup, message: Message, account: AccountSettings, api: PlatformApi) -> ReplyReference:
    """`lookup` without a request: what neither the event nor our index holds cannot be had."""
    del account, api
    return unavailable(message.reply_to, wanted, "not-delivered")


async def as_configured(account: AccountSettings, api: PlatformApi) -> Identity:
    """`identity` without a request: what the configuration says."""
    del api
    return Identity(tuple(sorted(account.all_self_ids)), account.self_name or account.id)
