"""What Weixin can be asked: a file. It has no call for a message or for the bot itself."""

from urllib.parse import quote, urlsplit

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from shared.channels.outcomes import raise_for_status
from shared.channels.port import PlatformApi
from shared.channels.weixin.limits import CDN_DOWNLOAD, CDN_HOST
from shared.errors import Refused
from shared.message import Attachment
from shared.settings import AccountSettings

_BLOCK = 16


async def fetch(attachment: Attachment, account: AccountSettings, api: PlatformApi, max_bytes: int) -> bytes:
    """A file from Weixin's CDN (or `credentials.api_url`'s host), deciphered.

    Only a picture may come without a key, and then in clear. The CDN asks for no token, so none goes there. Raises
    Transient, Refused or EffectUnknown.
    """
    key = attachment.ref.get("key", "")
    if not key and attachment.kind != "image":
        raise Refused("the attachment names no key")
    if (attachment.size or 0) > max_bytes:
        raise Refused("the file is larger than allowed")
    url = _url(attachment, account)
    response = await api.request("fetch", "GET", url, max_bytes=max_bytes + _BLOCK)
    raise_for_status(response)
    data = decrypted(response.body, key) if key else response.body
    if len(data) > max_bytes:
        raise Refused("the file is larger than allowed")
    return data


def decrypted(data: bytes, key: str) -> bytes:
    """AES-128-ECB with PKCS7 undone; `key` is 32 hex digits. Raises Refused: another key, or another file. Pure."""
    try:
        # The mode is the platform's: what it hides from its own CDN is not ours to choose.
        cipher = Cipher(algorithms.AES(bytes.fromhex(key)), modes.ECB()).decryptor()  # noqa: S305
        padded = cipher.update(data) + cipher.finalize()
        padding = PKCS7(_BLOCK * 8).unpadder()
        return padding.update(padded) + padding.finalize()
    except ValueError as error:
        raise Refused("the file cannot be deciphered") from error


def _url(attachment: Attachment, account: AccountSettings) -> str:
    url, param = attachment.ref.get("url", ""), attachment.ref.get("param", "")
    if not url and param:
        return CDN_DOWNLOAD + quote(param, safe="")
    try:
        asked, own = urlsplit(url), urlsplit(account.credential("api_url"))
        ours = (("https", CDN_HOST, None), ("https", CDN_HOST, 443), (own.scheme, own.hostname, own.port))
        if asked.hostname and (asked.scheme, asked.hostname, asked.port) in ours:
            return url
    except ValueError:
        pass
    raise Refused("the file lies on another host")
