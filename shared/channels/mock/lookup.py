"""What the mock channel knows without a platform."""

import base64
import binascii

from shared.channels.outcomes import unavailable
from shared.channels.port import Identity, PlatformApi
from shared.errors import Refused
from shared.message import Attachment, Lookup, Message, ReplyReference
from shared.settings import AccountSettings


async def lookup(wanted: Lookup, message: Message, account: AccountSettings, api: PlatformApi) -> ReplyReference:
    """Nobody can be asked: not-delivered."""
    del account, api
    return unavailable(message.reply_to, wanted, "not-delivered")


async def identity(account: AccountSettings, api: PlatformApi) -> Identity:
    """What the account says of itself."""
    del api
    return Identity(tuple(sorted(account.all_self_ids)), account.self_name or account.id)


async def fetch(attachment: Attachment, account: AccountSettings, api: PlatformApi, max_bytes: int) -> bytes:
    """The bytes that came with the event. Raises Refused when there are none, or too many."""
    del account, api
    try:
        data = base64.b64decode(attachment.ref.get("data", "").encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise Refused("the file's data is not base64") from error
    if not data or len(data) > max_bytes:
        raise Refused("the file is empty or larger than allowed")
    return data
