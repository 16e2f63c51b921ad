"""What WeCom can be asked: nothing but the bytes of a file."""

from shared.channels.addresses import is_stand_in, is_tls_on, parts_of
from shared.channels.outcomes import raise_for_status
from shared.channels.port import PlatformApi
from shared.channels.wecom.crypto import PAD, decrypted, key_of
from shared.channels.wecom.limits import MEDIA_BUCKET, MEDIA_CLOUD, TENCENT
from shared.errors import Malformed, Refused
from shared.message import Attachment
from shared.settings import AccountSettings


async def fetch(attachment: Attachment, account: AccountSettings, api: PlatformApi, max_bytes: int) -> bytes:
    """A file from WeCom's bucket (or `credentials.api_url`'s server), decrypted with its own key or the account's.

    Its address works for five minutes. Raises Transient, Refused or EffectUnknown.
    """
    url = attachment.ref.get("url", "")
    if not url:
        raise Refused("WeCom gave no address for the file: of a voice message it sends the words only")
    if not _is_media(url, account):
        raise Refused("the file lies on another host")
    try:
        key = key_of(attachment.ref.get("aeskey") or account.credential("encoding_aes_key"))
    except Malformed as error:
        raise Refused("there is no key that opens the file: set credentials.encoding_aes_key") from error
    response = await api.request("fetch", "GET", url, max_bytes=max_bytes + PAD)
    raise_for_status(response)
    try:
        clear = decrypted(response.body, key)
    except Malformed as error:
        raise Refused("the file cannot be decrypted") from error
    if len(clear) > max_bytes:
        raise Refused("the file is larger than allowed")
    return clear


def _is_media(url: str, account: AccountSettings) -> bool:
    asked = parts_of(url)
    if asked is None:
        return False
    bucket = (asked.hostname or "").startswith(MEDIA_BUCKET) and is_tls_on(asked, (MEDIA_CLOUD,))
    return is_stand_in(asked, account) or is_tls_on(asked, TENCENT) or bucket
