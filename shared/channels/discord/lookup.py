"""What Discord is asked: a quoted message, the current one, a file, who the bot is."""

from urllib.parse import quote, urlsplit

from shared.channels.discord.content import name_of
from shared.channels.discord.limits import FILE_HOSTS, LOOKUP_S
from shared.channels.discord.quotes import of_message, reference_of
from shared.channels.outcomes import raise_for_status, reason_of_status, unavailable
from shared.channels.port import Call, Identity, PlatformApi, PlatformResponse
from shared.channels.reading import id_of, map_of, required_map
from shared.errors import EffectUnknown, Malformed, Refused, Transient
from shared.message import Attachment, Lookup, Message, ReplyReference
from shared.settings import AccountSettings

API_URL = "https://discord.com/api/v10"


def url_of(account: AccountSettings, *path: str) -> str:
    """The address of a REST resource; every step of `path` is escaped. `credentials.api_url` overrides the base."""
    base = (account.credential("api_url") or API_URL).rstrip("/")
    return "/".join((base, *(quote(step, safe="@") for step in path)))


def authorised(account: AccountSettings) -> dict[str, str]:
    """The header with the bot token: never log it."""
    return {"authorization": f"Bot {account.credential('token')}"}


async def lookup(wanted: Lookup, message: Message, account: AccountSettings, api: PlatformApi) -> ReplyReference:
    """One GET of exactly that message in the current message's own channel; every failure is a reason."""
    if wanted.message_id is None or wanted.chat_id != message.chat_id:
        return unavailable(message.reply_to, wanted, "not-found")
    try:
        response = await _read("get_message", wanted.chat_id, wanted.message_id, account, api)
        if response.status != 200:
            return unavailable(message.reply_to, wanted, reason_of_status(response.status))
        shown = required_map(response.json(), "the platform's answer")
    except (Transient, EffectUnknown, Refused, Malformed):
        return unavailable(message.reply_to, wanted, "not-delivered")
    return of_message(shown, wanted.chat_id, wanted.message_id, "lookup")


async def verify_source(message: Message, account: AccountSettings, api: PlatformApi) -> bool:
    """True when Discord shows the current message in its channel with the same sender and the same parent.

    Raises Transient when Discord could not be asked.
    """
    try:
        response = await _read("verify", message.chat_id, message.message_id, account, api)
        if response.status in (401, 403, 404, 410):
            return False
        raise_for_status(response)
        shown = required_map(response.json(), "the platform's answer")
    except (EffectUnknown, Refused, Malformed) as error:
        raise Transient("the source could not be verified") from error
    parent = reference_of(shown, message.chat_id, message.message_id)
    return (
        id_of(shown.get("id")) == message.message_id
        and id_of(shown.get("channel_id")) == message.chat_id
        and id_of(map_of(shown.get("author")).get("id")) == message.sender_id
        and (parent and parent.message_id) == (message.reply_to and message.reply_to.message_id)
    )


async def fetch(attachment: Attachment, account: AccountSettings, api: PlatformApi, max_bytes: int) -> bytes:
    """A file from Discord's own hosts (or `credentials.api_url`'s); its address is signed, so no token goes along.

    Raises Transient, Refused or EffectUnknown.
    """
    url = attachment.ref.get("url", "")
    if not _is_ours(url, account):
        raise Refused("the file lies on another host")
    if (attachment.size or 0) > max_bytes:
        raise Refused("the file is larger than allowed")
    response = await api.request("fetch", "GET", url, max_bytes=max_bytes)
    raise_for_status(response)
    return response.body


async def identity(account: AccountSettings, api: PlatformApi) -> Identity:
    """GET /users/@me: the bot's id and name. Raises Transient, Refused or EffectUnknown."""
    response = await api.request("identity", "GET", url_of(account, "users", "@me"), headers=authorised(account))
    raise_for_status(response)
    try:
        user = required_map(response.json(), "the platform's answer")
    except Malformed as error:
        raise Transient("the platform's answer cannot be read") from error
    own_id = id_of(user.get("id"))
    if own_id is None:
        raise Refused("/users/@me named no id")
    return Identity((own_id,), name_of(user) or "")


async def _read(
    call: Call, chat_id: str, message_id: str, account: AccountSettings, api: PlatformApi
) -> PlatformResponse:
    url = url_of(account, "channels", chat_id, "messages", message_id)
    return await api.request(call, "GET", url, ref=message_id, headers=authorised(account), timeout_s=LOOKUP_S)


def _is_ours(url: str, account: AccountSettings) -> bool:
    """Discord's file hosts over TLS, or the server that the operator named."""
    try:
        asked, own = urlsplit(url), urlsplit(account.credential("api_url"))
        if asked.scheme == "https" and asked.hostname in FILE_HOSTS and asked.port is None:
            return True
        named = (own.scheme, own.hostname, own.port)
        return own.hostname is not None and (asked.scheme, asked.hostname, asked.port) == named
    except ValueError:
        return False
