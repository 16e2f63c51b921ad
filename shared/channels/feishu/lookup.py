"""What Feishu is asked: an access token, a message, a file, who the bot is."""

from collections.abc import Mapping
from urllib.parse import quote

from shared.channels.feishu.limits import LOOKUP_CODES, LOOKUP_S, RATE_CODES, TOKEN_CODES
from shared.channels.feishu.quotes import of_item, quoted_id_of
from shared.channels.outcomes import header, raise_for_status, reason_of_status, unavailable
from shared.channels.port import Call, Identity, Json, PlatformApi, PlatformResponse
from shared.channels.reading import id_of, int_of, map_of, maps_of, text_of
from shared.channels.tokens import TOKENS
from shared.errors import EffectUnknown, Malformed, Refused, Transient
from shared.message import Attachment, Lookup, Message, ReplyReference
from shared.settings import AccountSettings

API_URL = "https://open.feishu.cn"
TOKEN_LIVES_S = 7200
"""How long an access token lives at most (Feishu, "tenant_access_token")."""


def method_url(account: AccountSettings, *path: str) -> str:
    """The address of a call; `credentials.api_url` overrides the public host (Lark: https://open.larksuite.com).

    Raises Refused for an id that would change the path."""
    if any(part in ("", ".", "..") for part in path):
        raise Refused("an id is no id")
    base = (account.credential("api_url") or API_URL).rstrip("/")
    return f"{base}/open-apis/{'/'.join(quote(part, safe='') for part in path)}"


async def authorised(account: AccountSettings, api: PlatformApi) -> dict[str, str]:
    """The header with the access token: never log it. Raises Transient or Refused."""
    token = await TOKENS.get(account, lambda: _login(account, api))
    return {"authorization": f"Bearer {token}"}


def code_of(response: PlatformResponse) -> tuple[int | None, dict[str, Json]]:
    """Feishu's own code, which comes with statuses of all sorts, and the answer; (None, {}) where there is none."""
    try:
        answer = map_of(response.json())
    except Malformed:
        return None, {}
    return int_of(answer.get("code")), answer


def check_token(response: PlatformResponse, account: AccountSettings) -> None:
    """Forget a token that the platform refused. Raises Transient where a code says that it was the token: the next try
    logs in again."""
    refused = code_of(response)[0] in TOKEN_CODES
    if refused or response.status == 401:
        TOKENS.forget(account)
    if refused:
        raise Transient("the platform refused the access token")


async def lookup(wanted: Lookup, message: Message, account: AccountSettings, api: PlatformApi) -> ReplyReference:
    """One message.get, bound to the message's own chat; every failure is a reason."""
    quoted = wanted.message_id
    if quoted is None or wanted.chat_id != message.chat_id:
        return unavailable(message.reply_to, wanted, "not-found")
    try:
        response = await _read_message("get_message", quoted, account, api)
    except (Transient, EffectUnknown, Refused):
        return unavailable(message.reply_to, wanted, "not-delivered")
    code, answer = code_of(response)
    if code != 0 or response.status != 200:
        reason = LOOKUP_CODES.get(code or 0) or reason_of_status(response.status)
        return unavailable(message.reply_to, wanted, reason)
    items = map_of(answer.get("data")).get("items")
    if not isinstance(items, list):
        return unavailable(message.reply_to, wanted, "not-delivered")
    found = _item(answer, quoted)
    if found is None or id_of(found.get("chat_id")) != message.chat_id:
        return unavailable(message.reply_to, wanted, "not-found")
    return of_item(found, quoted)


async def verify_source(message: Message, account: AccountSettings, api: PlatformApi) -> bool:
    """True when Feishu shows the current message in its chat and topic, by the same sender, with the same parent.

    A bot is named by its app id there and by its open id in events: of it only the sort is compared. Raises Transient
    when Feishu could not be asked.
    """
    try:
        response = await _read_message("verify", message.message_id, account, api)
        code, answer = code_of(response)
        if code in LOOKUP_CODES or response.status in (401, 403, 404, 410):
            return False
        raise_for_status(response)
    except (EffectUnknown, Refused) as error:
        raise Transient("the source could not be verified") from error
    if code != 0:
        raise Transient("the source could not be verified")
    found = _item(answer, message.message_id)
    if found is None or found.get("deleted") is True:
        return False
    sender = map_of(found.get("sender"))
    bot = sender.get("sender_type") in ("app", "bot")
    same = bot if message.sender_is_bot else id_of(sender.get("id")) == message.sender_id
    return (
        same
        and id_of(found.get("chat_id")) == message.chat_id
        and id_of(found.get("thread_id")) == message.thread_id
        and quoted_id_of(found) == (message.reply_to.message_id if message.reply_to else None)
    )


async def fetch(attachment: Attachment, account: AccountSettings, api: PlatformApi, max_bytes: int) -> bytes:
    """A file by the id of the message that it lies in and its key. Raises Transient, Refused or EffectUnknown."""
    message_id, key, sort = (attachment.ref.get(name, "") for name in ("message_id", "key", "type"))
    if not (message_id and key and sort):
        raise Refused("the attachment names no file that can be fetched")
    if (attachment.size or 0) > max_bytes:
        raise Refused("the file is larger than allowed")
    url = method_url(account, "im", "v1", "messages", message_id, "resources", key)
    response = await api.request(
        "fetch", "GET", url, headers=await authorised(account, api), params={"type": sort}, max_bytes=max_bytes
    )
    if response.status != 200 or (header(response.headers, "content-type") or "").startswith("application/json"):
        check_token(response, account)
        raise_for_status(response)
        code, answer = code_of(response)
        if code and "msg" in answer:
            raise Refused("the file was refused")
    return response.body


async def identity(account: AccountSettings, api: PlatformApi) -> Identity:
    """bot/v3/info: the bot's open id and name, beside the app id. Raises Transient, Refused or EffectUnknown."""
    url = method_url(account, "bot", "v3", "info")
    response = await api.request("identity", "GET", url, headers=await authorised(account, api))
    check_token(response, account)
    raise_for_status(response)
    code, answer = code_of(response)
    if code is None or code in RATE_CODES:
        raise Transient("the platform's answer cannot be read")
    bot = map_of(answer.get("bot"))
    open_id = id_of(bot.get("open_id"))
    if code != 0 or open_id is None:
        raise Refused("bot/v3/info was refused")
    app_id = account.credential("app_id")
    return Identity((open_id, *((app_id,) if app_id else ())), text_of(bot.get("app_name")))


async def _read_message(call: Call, message_id: str, account: AccountSettings, api: PlatformApi) -> PlatformResponse:
    """message.get, cards in full. Raises what the network raises, and Transient after a refused token."""
    headers: Mapping[str, str] = await authorised(account, api)
    response = await api.request(
        call,
        "GET",
        method_url(account, "im", "v1", "messages", message_id),
        ref=message_id,
        headers=headers,
        params={"user_id_type": "open_id", "card_msg_content_type": "raw_card_content"},
        timeout_s=LOOKUP_S,
    )
    check_token(response, account)
    return response


def _item(answer: dict[str, Json], message_id: str) -> dict[str, Json] | None:
    """The message itself: that of a merged forward comes with everything inside."""
    items = maps_of(map_of(answer.get("data")).get("items"))
    return next((item for item in items if id_of(item.get("message_id")) == message_id), None)


async def _login(account: AccountSettings, api: PlatformApi) -> tuple[str, float]:
    """A tenant access token and the seconds it lives. Nothing else was asked yet, so a lost answer is Transient."""
    credentials = {"app_id": account.credential("app_id"), "app_secret": account.credential("app_secret")}
    url = method_url(account, "auth", "v3", "tenant_access_token", "internal")
    try:
        response = await api.request("login", "POST", url, json=credentials, timeout_s=LOOKUP_S)
    except EffectUnknown as error:
        raise Transient("the platform did not answer the login") from error
    code, answer = code_of(response)
    if code in RATE_CODES:
        raise Transient("too many logins")
    raise_for_status(response)
    if code is None:
        raise Transient("the platform's answer cannot be read")
    token = text_of(answer.get("tenant_access_token"))
    if code != 0 or not token:
        raise Refused("the login was refused: compare credentials.app_id and app_secret")
    return token, float(min(max(int_of(answer.get("expire")) or TOKEN_LIVES_S, 1), TOKEN_LIVES_S))
