"""What WeCom can be asked: nothing but the bytes of a file."""

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

from shared.channels.outcomes import raise_for_status, unavailable
from shared.channels.port import Identity, PlatformApi
from shared.channels.wecom.crypto import PAD, decrypted, key_of
from shared.channels.wecom.limits import MEDIA_BUCKET, MEDIA_CLOUD, TENCENT
from shared.errors import Malformed, Refused
from shared.message import Attachment, Lookup, Message, ReplyReference
from shared.settings import AccountSettings

_ADDRESS: Final = re.compile(r"[!-\[\]-~]+")
"""Visible ASCII without the backslash: of anything else two parsers may read different hosts."""


async def lookup(wanted: Lookup, message: Message, account: AccountSettings, api: PlatformApi) -> ReplyReference:
    """WeCom has no call for a message: what the callback does not hold cannot be had."""
    del account, api
    return unavailable(message.reply_to, wanted, "not-delivered")


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


async def identity(account: AccountSettings, api: PlatformApi) -> Identity:
    """What the configuration says: there is no call that names the bot."""
    del api
    return Identity(tuple(sorted(account.all_self_ids)), account.self_name or account.id)


def parts_of(url: str) -> SplitResult | None:
    """The address taken apart; None when it is none, could be read in two ways, or names a user or password."""
    if not _ADDRESS.fullmatch(url):
        return None
    try:
        found = urlsplit(url)
        _ = found.port
    except ValueError:
        return None
    return found if found.hostname and "@" not in found.netloc else None


def is_stand_in(asked: SplitResult, account: AccountSettings) -> bool:
    """True for the server that `credentials.api_url` names."""
    named = parts_of(account.credential("api_url"))
    return named is not None and (asked.scheme, asked.hostname, asked.port) == (
        named.scheme,
        named.hostname,
        named.port,
    )


def is_tencent(asked: SplitResult) -> bool:
    """True for a host of Tencent's, over TLS on the usual port."""
    return asked.scheme == "https" and asked.port in (None, 443) and (asked.hostname or "").endswith(TENCENT)


def _is_media(url: str, account: AccountSettings) -> bool:
    asked = parts_of(url)
    if asked is None:
        return False
    host = asked.hostname or ""
    bucket = host.startswith(MEDIA_BUCKET) and host.endswith(MEDIA_CLOUD)
    tls = asked.scheme == "https" and asked.port in (None, 443)
    return is_stand_in(asked, account) or is_tencent(asked) or (tls and bucket)
