"""What the Cloud API can be asked: a file, and who the bot is. Messages cannot be read back."""

import re
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from shared.channels.outcomes import raise_for_status
from shared.channels.port import Call, Identity, Json, PlatformApi
from shared.channels.reading import id_of, int_of, map_of, text_of
from shared.channels.whatsapp.limits import GRAPH_URL, GRAPH_VERSION, MEDIA_HOST
from shared.errors import Malformed, Refused, Transient
from shared.message import Attachment
from shared.settings import AccountSettings

_VERSIONED = re.compile(r"/v\d{1,3}(?:\.\d{1,3})?$", re.ASCII)


def graph_url(account: AccountSettings, path: str) -> str:
    """The address of a node of the Graph API; `credentials.api_url` overrides the public one."""
    base = (account.credential("api_url") or GRAPH_URL).rstrip("/")
    return f"{base}/{path}" if _VERSIONED.search(base) else f"{base}/{GRAPH_VERSION}/{path}"


def number_of(account: AccountSettings, route: Mapping[str, str] | None = None) -> str:
    """The id of the business number, a part of an address: the account's, else the one that the message came to."""
    named = (route or {}).get("number", "")
    return quote(account.credential("phone_number_id") or named or account.self_id, safe="")


def authorised(account: AccountSettings) -> dict[str, str]:
    """The header with the token: never log it."""
    return {"authorization": f"Bearer {account.credential('token')}"}


async def fetch(attachment: Attachment, account: AccountSettings, api: PlatformApi, max_bytes: int) -> bytes:
    """The file's address by its media id, then the file. Raises Transient, Refused or EffectUnknown.

    On the web form the file lies encrypted with WhatsApp, and only the linked device can get it anew.
    """
    media_id = attachment.ref.get("media_id")
    if not media_id:
        raise Refused("the message names no file that can be fetched: a bridge hands over no media")
    if (attachment.size or 0) > max_bytes:
        raise Refused("the file is larger than allowed")
    media = await _ask("fetch", quote(media_id, safe=""), {}, account, api)
    url = text_of(media.get("url"))
    size = media.get("file_size")
    known = (
        int(size) if isinstance(size, str) and size.isascii() and size.isdigit() and len(size) < 16 else int_of(size)
    )
    if not _is_ours(url, account):
        raise Refused("the file lies on another host")
    if (known or 0) > max_bytes:
        raise Refused("the file is larger than allowed")
    response = await api.request("fetch", "GET", url, headers=authorised(account), max_bytes=max_bytes)
    raise_for_status(response)
    return response.body


async def identity(account: AccountSettings, api: PlatformApi) -> Identity:
    """cloud: the number's own node. web: what the account says. Raises Transient, Refused or EffectUnknown."""
    if account.variant == "web":
        return Identity(tuple(sorted(account.all_self_ids)), account.self_name)
    fields = {"fields": "id,display_phone_number,verified_name"}
    node = await _ask("identity", number_of(account), fields, account, api)
    number = id_of(node.get("id"))
    if number is None:
        raise Refused("the number's node names no id")
    shown = "".join(each for each in text_of(node.get("display_phone_number")) if each.isascii() and each.isdigit())
    return Identity((number, shown) if shown else (number,), text_of(node.get("verified_name")))


async def _ask(
    call: Call, path: str, params: dict[str, str], account: AccountSettings, api: PlatformApi
) -> dict[str, Json]:
    if not path:
        raise Refused("the account has no credentials.phone_number_id")
    response = await api.request(
        call, "GET", graph_url(account, path), headers=authorised(account), params=params or None
    )
    raise_for_status(response)
    try:
        return map_of(response.json())
    except Malformed as error:
        raise Transient("the platform's answer cannot be read") from error


def _is_ours(url: str, account: AccountSettings) -> bool:
    """The token goes to Meta's media host over TLS, or to the server that the operator named, and nowhere else."""
    try:
        asked, own = urlsplit(url), urlsplit(account.credential("api_url"))
        named = (own.scheme, own.hostname, own.port)
        return bool(url) and (asked.scheme, asked.hostname, asked.port) in (("https", MEDIA_HOST, None), named)
    except ValueError:
        return False
