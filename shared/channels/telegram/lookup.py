"""What Telegram can be asked: who the bot is, and a file. Messages cannot be read back by bots."""

from urllib.parse import quote

from shared.channels.outcomes import raise_for_status
from shared.channels.port import Call, Identity, Json, PlatformApi
from shared.channels.reading import id_of, int_of, map_of, text_of
from shared.errors import Malformed, Refused, Transient
from shared.message import Attachment
from shared.settings import AccountSettings

API_URL = "https://api.telegram.org"


def base_url(account: AccountSettings) -> str:
    """The Bot API's address: `credentials.api_url` for a server of one's own, else the public one."""
    return (account.credential("api_url") or API_URL).rstrip("/")


def method_url(account: AccountSettings, method: str) -> str:
    """The address of a method. It holds the token: never log it."""
    return f"{base_url(account)}/bot{account.credential('token')}/{method}"


async def identity(account: AccountSettings, api: PlatformApi) -> Identity:
    """getMe: id and user name. Raises Transient, Refused or EffectUnknown."""
    me = await _ask("identity", "getMe", None, account, api)
    bot_id = id_of(me.get("id"))
    if bot_id is None:
        raise Refused("getMe named no id")
    return Identity((bot_id,), text_of(me.get("username")))


async def fetch(attachment: Attachment, account: AccountSettings, api: PlatformApi, max_bytes: int) -> bytes:
    """getFile, then the file from the same server. Raises Transient, Refused or EffectUnknown."""
    file_id = attachment.ref.get("file_id")
    if not file_id:
        raise Refused("the attachment names no file")
    if (attachment.size or 0) > max_bytes:
        raise Refused("the file is larger than allowed")
    file = await _ask("fetch", "getFile", {"file_id": file_id}, account, api)
    path = text_of(file.get("file_path"))
    # A server of one's own may name a path on its disk; only what it serves itself is fetched.
    if not path or path.startswith("/") or ".." in path.split("/") or (int_of(file.get("file_size")) or 0) > max_bytes:
        raise Refused("the file cannot be fetched")
    url = f"{base_url(account)}/file/bot{account.credential('token')}/{quote(path)}"
    response = await api.request("fetch", "GET", url, max_bytes=max_bytes)
    raise_for_status(response)
    return response.body


async def _ask(call: Call, method: str, arguments: Json, account: AccountSettings, api: PlatformApi) -> dict[str, Json]:
    response = await api.request(call, "POST", method_url(account, method), json=arguments)
    raise_for_status(response)
    try:
        answer = map_of(response.json())
    except Malformed as error:
        raise Transient("the platform's answer cannot be read") from error
    if answer.get("ok") is not True:
        raise Refused(f"{method} was refused")
    return map_of(answer.get("result"))
