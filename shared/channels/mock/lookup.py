"""What the mock channel knows without a platform."""

import base64
import binascii

from shared.channels.port import PlatformApi
from shared.errors import Refused
from shared.message import Attachment
from shared.settings import AccountSettings


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
