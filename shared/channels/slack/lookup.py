"""What Slack is asked: the root of a thread, the current message, a file, who the bot is."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from shared.channels.outcomes import raise_for_status, reason_of_status, unavailable
from shared.channels.port import Call, Identity, PlatformApi, PlatformResponse
from shared.channels.reading import id_of, maps_of, required_map, text_of
from shared.channels.slack.limits import FILES_HOST, LOOKUP_ERRORS, LOOKUP_S, RATE_ERRORS, UNSURE_ERRORS
from shared.channels.slack.quotes import of_message, thread_of
from shared.errors import EffectUnknown, Malformed, Refused, Transient
from shared.message import Attachment, Lookup, Message, ReplyReference
from shared.settings import AccountSettings

API_URL = "https://slack.com/api"


def method_url(account: AccountSettings, method: str) -> str:
    """The address of a Web API method; `credentials.api_url` overrides the public one."""
    return f"{(account.credential('api_url') or API_URL).rstrip('/')}/{method}"


def authorised(account: AccountSettings) -> dict[str, str]:
    """The header with the bot token: never log it."""
    return {"authorization": f"Bearer {account.credential('token')}"}


async def lookup(wanted: Lookup, message: Message, account: AccountSettings, api: PlatformApi) -> ReplyReference:
    """One conversations.history for exactly that ts in the message's own channel; every failure is a reason."""
    ts = wanted.message_id
    if ts is None or wanted.chat_id != message.chat_id:
        return unavailable(message.reply_to, wanted, "not-found")
    try:
        response = await _read("get_message", "conversations.history", ts, _only(wanted.chat_id, ts), account, api)
        if response.status != 200:
            return unavailable(message.reply_to, wanted, reason_of_status(response.status))
        answer = required_map(response.json(), "the platform's answer")
    except (Transient, EffectUnknown, Refused, Malformed):
        return unavailable(message.reply_to, wanted, "not-delivered")
    if answer.get("ok") is not True:
        reason = LOOKUP_ERRORS.get(text_of(answer.get("error")), "not-delivered")
        return unavailable(message.reply_to, wanted, reason)
    if not isinstance(answer.get("messages"), list):
        return unavailable(message.reply_to, wanted, "not-delivered")
    # Slack answers with the nearest earlier message when the one asked for is gone.
    root = next((item for item in maps_of(answer["messages"]) if id_of(item.get("ts")) == ts), None)
    if root is None:
        return unavailable(message.reply_to, wanted, "not-found")
    return of_message(root, ts, "lookup") or unavailable(message.reply_to, wanted, "unsupported")


async def verify_source(message: Message, account: AccountSettings, api: PlatformApi) -> bool:
    """True when Slack shows the current message in its channel with the same sender and the same root.

    History holds top-level messages only, so one inside a thread is read among the replies, where the root comes
    first. Raises Transient when Slack could not be asked.
    """
    method, params = "conversations.history", _only(message.chat_id, message.message_id)
    if message.thread_id is not None:
        method, params = "conversations.replies", {**params, "ts": message.thread_id, "limit": "2"}
    try:
        response = await _read("verify", method, message.message_id, params, account, api)
        if response.status in (401, 403, 404, 410):
            return False
        raise_for_status(response)
        answer = required_map(response.json(), "the platform's answer")
    except (EffectUnknown, Refused, Malformed) as error:
        raise Transient("the source could not be verified") from error
    if answer.get("ok") is not True:
        if text_of(answer.get("error")) in LOOKUP_ERRORS:
            return False
        raise Transient("the source could not be verified")
    shown = next((m for m in maps_of(answer.get("messages")) if id_of(m.get("ts")) == message.message_id), None)
    if shown is None or shown.get("subtype") == "tombstone":
        return False
    senders = {id_of(shown.get("user")), id_of(shown.get("bot_id"))}
    return message.sender_id in senders and thread_of(shown) == message.thread_id


async def fetch(attachment: Attachment, account: AccountSettings, api: PlatformApi, max_bytes: int) -> bytes:
    """A file from Slack's file host (or `credentials.api_url`'s). Raises Transient, Refused or EffectUnknown.

    Without the scope files:read Slack answers with a sign-in page instead of the file.
    """
    url = attachment.ref.get("url", "")
    if not _is_ours(url, account):
        raise Refused("the file lies on another host")
    if (attachment.size or 0) > max_bytes:
        raise Refused("the file is larger than allowed")
    response = await api.request("fetch", "GET", url, headers=authorised(account), max_bytes=max_bytes)
    raise_for_status(response)
    kind = next((value for name, value in response.headers.items() if name.lower() == "content-type"), "")
    if kind.startswith("text/html") and attachment.media_type != "text/html":
        raise Refused("a page came instead of the file: the token may lack files:read")
    return response.body


async def identity(account: AccountSettings, api: PlatformApi) -> Identity:
    """auth.test: the bot's user id and bot id, and its name. Raises Transient, Refused or EffectUnknown."""
    response = await api.request("identity", "POST", method_url(account, "auth.test"), headers=authorised(account))
    raise_for_status(response)
    try:
        answer = required_map(response.json(), "the platform's answer")
    except Malformed as error:
        raise Transient("the platform's answer cannot be read") from error
    if answer.get("ok") is not True:
        if text_of(answer.get("error")) in RATE_ERRORS | UNSURE_ERRORS:
            raise Transient("auth.test was not answered")
        raise Refused("auth.test was refused")
    ids = tuple(found for key in ("user_id", "bot_id") if (found := id_of(answer.get(key))))
    if not ids:
        raise Refused("auth.test named no id")
    return Identity(ids, text_of(answer.get("user")))


def _only(channel: str, ts: str) -> dict[str, str]:
    return {"channel": channel, "latest": ts, "oldest": ts, "inclusive": "true", "limit": "1"}


async def _read(
    call: Call, method: str, ref: str, params: Mapping[str, str], account: AccountSettings, api: PlatformApi
) -> PlatformResponse:
    return await api.request(
        call,
        "GET",
        method_url(account, method),
        ref=ref,
        headers=authorised(account),
        params=params,
        timeout_s=LOOKUP_S,
    )


def _is_ours(url: str, account: AccountSettings) -> bool:
    """The token goes to Slack's file host over TLS, or to the server that the operator named, and nowhere else."""
    try:
        asked, own = urlsplit(url), urlsplit(account.credential("api_url"))
        named = (own.scheme, own.hostname, own.port)
        return (asked.scheme, asked.hostname, asked.port) in (("https", FILES_HOST, None), named) and bool(url)
    except ValueError:
        return False
